"""Trajectory folders: records come back; nothing is overwritten or read from outside."""

import importlib.metadata
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broken_toys import Chinese
from toys import Coin, make_spec, make_walk, read_files

from vlgym.env.prompts import PromptBuilder
from vlgym.env.spaces import MAX_TEXT
from vlgym.env_groups.wire import pack, unpack
from vlgym.errors import TrajectoryError
from vlgym.files import seal
from vlgym.parsers import TagParser
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.play.trajectory import TrajectoryWriter, describe_run, read_trajectories
from vlgym.registry.versions import list_versions
from vlgym.types import StepRecord

RUN = describe_run([make_walk()], note="test")


def play(episodes: int = 3) -> list[list[StepRecord]]:
    runner = Runner([make_walk(), make_walk()], builder=PromptBuilder(2, 2), episodes=episodes)
    return list(run_episodes(runner, RandomPolicy()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = TrajectoryWriter(tmp_path / "run", RUN)
    for episode in play():
        writer.write(episode)
    return tmp_path / "run"


def plain(episode: list[StepRecord]) -> Any:
    """Return all that is written of an episode, pictures as lists."""
    parts = [part for record in episode for message in record.messages for part in message["content"]]
    images = [record.image for record in episode] + [part["image"] for part in parts if "image" in part]
    texts = [replace(record, image=None, messages=[], extra=None, final_messages=None) for record in episode]
    words = [part["text"] for part in parts if "text" in part]
    return texts, words, [image.tolist() for image in images], [len(record.messages) for record in episode]


def test_episodes_come_back_as_they_were_with_lossless_images_and_prompts(folder: Path) -> None:
    assert list(map(plain, read_trajectories(folder))) == list(map(plain, play()))


def test_the_run_says_what_its_numbers_depend_on() -> None:
    described = RUN["environments"]["vlgym/Walk-v0"]
    assert described["spec_hash"] == make_spec().digest()
    assert (described["parser"], described["parser_version"], described["prompt_version"]) == ("auto", 1, 1)
    assert described["class"] == "toys:Walk"
    assert described["arguments"]["invalid_action"] == "noop"
    assert described["arguments"]["image_size"] == [22, 22]
    assert described["history"] == {"turns": 0, "images": 1}
    assert RUN["note"] == "test"
    assert {"python", "vlgym", "gymnasium", "numpy", "pillow"} <= set(RUN["versions"])
    assert "spec_hash" not in describe_run([Coin()])["environments"]["Coin"]
    assert "null" not in json.dumps(RUN)


def test_a_parser_that_says_when_a_reply_is_over_is_another_run() -> None:
    class Plain(TagParser):
        name = "plain"
        longest = 80
        end: Any = None

    class Ending(Plain):
        end = staticmethod(len)

    plain, ending = (describe_run([make_walk(parser=parser)]) for parser in (Plain(), Ending()))
    described = [run["environments"]["vlgym/Walk-v0"] for run in (plain, ending)]
    ends = [entry["reply_ends"] for entry in described]
    assert ends == ["with the turn", "with the first action"]
    assert [entry["parser_settings"]["longest"] for entry in described] == [80, 80]


def test_two_environments_of_one_id_with_different_arguments_are_not_one_description() -> None:
    assert describe_run([make_walk(), make_walk()]) == describe_run([make_walk()])
    with pytest.raises(TrajectoryError, match="Two environments vlgym/Walk-v0 have different arguments"):
        describe_run([make_walk(), make_walk(max_turns=4)])


def test_the_versions_of_a_plugin_and_of_what_it_requires_belong_to_a_run() -> None:
    versions = list_versions({"vlgym", "gymnasium", "no-such-distribution"})
    assert versions["gymnasium"] == importlib.metadata.version("gymnasium")
    plugin = list_versions({"pytest"})
    assert {"pytest", "pluggy"} <= set(plugin) - set(versions)
    assert "hypothesis" not in plugin  # an extra of pytest's, not a requirement


def test_another_run_is_refused_and_nothing_is_overwritten(folder: Path) -> None:
    before = read_files(folder)
    with pytest.raises(TrajectoryError, match="holds the trajectories of another run; choose another folder"):
        TrajectoryWriter(folder, describe_run([make_walk(parser="json")]))
    with pytest.raises(TrajectoryError, match=r"Different: environments\..*\.invalid_penalty\.$"):
        TrajectoryWriter(folder, describe_run([make_walk(invalid_penalty=0.5)], note="test"))
    assert read_files(folder) == before
    with pytest.raises(TrajectoryError, match=r"is not empty and holds no run\.json"):
        TrajectoryWriter(folder / "images", RUN)
    with pytest.raises(TrajectoryError, match=r"holds no metadata\.jsonl"):
        list(read_trajectories(folder / "images"))


def change_line(folder: Path, number: int, **changes: Any) -> None:
    path = folder / "metadata.jsonl"
    lines = path.read_text().splitlines()
    row = {**json.loads(lines[number - 1]), **changes}
    lines[number - 1] = json.dumps(seal({key: value for key, value in row.items() if value is not ...}))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("changes", [
    {"reward": ...}, {"file_name": ...}, {"file_name": "images/none.png"}, {"file_name": "run.json"},
    {"prompt": "["}, {"prompt": json.dumps([{"role": "user"}])}, {"actions": None},
    {"prompt": json.dumps([{"role": "user", "content": [{"type": "image", "file_name": "images/none.png"}]}])},
])  # fmt: skip
def test_a_malformed_line_is_named(changes: dict[str, Any], folder: Path) -> None:
    change_line(folder, 2, **changes)
    with pytest.raises(TrajectoryError, match=r"metadata\.jsonl, line 2: "):
        list(read_trajectories(folder))


@pytest.mark.parametrize("line", [b"{", b"3", b"[]", b"null", b'{"a": 1}', b"[" * 200_000, b"\xff\xfe"])
def test_a_line_that_is_no_record_is_named(line: bytes, folder: Path) -> None:
    path = folder / "metadata.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes())
    with pytest.raises(TrajectoryError, match=r"metadata\.jsonl(, line 1| cannot be read): \w+Error") as caught:
        list(read_trajectories(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["images/../../secret.png", "/etc/hostname", "images/link.png"])
def test_no_file_outside_the_folder_is_read(name: str, folder: Path) -> None:
    image = next((folder / "images").iterdir())
    (folder.parent / "secret.png").write_bytes(image.read_bytes())
    (folder / "images" / "link.png").symlink_to(folder.parent / "secret.png")
    change_line(folder, 1, file_name=name)
    with pytest.raises(TrajectoryError, match=r"line 1: ValueError: file_name .* points outside the folder"):
        list(read_trajectories(folder))


def test_an_episode_that_was_cut_off_is_still_read(folder: Path) -> None:
    path = folder / "metadata.jsonl"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:1]))
    assert [len(episode) for episode in read_trajectories(folder)] == [1]


def test_texts_in_any_alphabet_come_back_from_the_folder_and_from_the_wire(tmp_path: Path) -> None:
    env = Chinese(vlgym_spec=make_spec())
    writer = TrajectoryWriter(tmp_path / "run", describe_run([env]))
    (played,) = run_episodes(Runner([env], episodes=1), RandomPolicy())
    writer.write(played)
    (read,) = read_trajectories(tmp_path / "run")
    assert "走到第" in read[0].text
    assert [(turn.text, turn.actions) for turn in read] == [(turn.text, turn.actions) for turn in played]
    answer = {**env.reset(seed=1)[0], "long": "😀" * MAX_TEXT}
    there = unpack(pack(answer))
    assert (there["text"], there["long"]) == (answer["text"], answer["long"])
