"""An evaluation's folder: nothing is overwritten, lost or counted twice, wherever it stops."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toys
from commands import invoke
from toy_games import NIM
from toys import installed, litter, make_spec, read_files

from vlgym.env.prompts import PromptBuilder
from vlgym.errors import FailedError, TrajectoryError, UserError
from vlgym.evaluation import run_evaluation
from vlgym.evaluation.folder import EvaluationFolder, count_finished
from vlgym.evaluation.plan import Part
from vlgym.evaluation.run import Watcher
from vlgym.files import seal
from vlgym.play import trajectory
from vlgym.play.policies import RandomPolicy
from vlgym.play.trajectory import TrajectoryWriter, read_header, read_trajectories
from vlgym.registry.versions import hash_code
from vlgym.types import Outcome, Reply
from vlgym.ui.index import Index

WALK = make_spec()
PARTS = [Part(WALK.id, episodes=3, repeats=2), Part(WALK.id, episodes=2, pictures="grey")]
EVERY = {(WALK.id, n) for n in range(6)} | {(f"{WALK.id} grey", n) for n in range(2)}
INSTALLED = (WALK,)
pytestmark = pytest.mark.usefixtures("toys_installed")


def numbers(folder: Path) -> Any:
    """All that an interruption must not change, whenever an episode ended."""
    turns = [turn for episode in read_trajectories(folder) for turn in episode]
    return sorted((r.part, r.episode, r.turn, r.reply, r.reward, r.success, r.image.tobytes()) for r in turns)


class Stop(Watcher):
    """Ends the run at a reply."""

    def __init__(self, at: int) -> None:
        self.left = at

    def reply(self, reply: Reply, key: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A finished run and its numbers."""
    folder = tmp_path_factory.mktemp("played") / "run"
    with installed(WALK):
        run_evaluation(PARTS, RandomPolicy(), folder, num_envs=3)
    return folder, numbers(folder)


@pytest.fixture
def whole(played: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copytree(played[0], tmp_path / "whole"))


@pytest.mark.parametrize("at", [1, 17])
def test_a_run_stopped_twice_ends_as_one_that_was_not(at: int, played: Any, tmp_path: Path) -> None:
    out = tmp_path / "stopped"
    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            run_evaluation(PARTS, RandomPolicy(), out, num_envs=3, resume=resume, watcher=Stop(at))
    for sessions in (3, 4):  # in the last one nothing is left
        run_evaluation(PARTS, RandomPolicy(), out, num_envs=2, resume=True)
        assert numbers(out) == played[1]
        assert len(read_header(out)["sessions"]) == sessions


@pytest.mark.parametrize("cut", [
    lambda data: data[: len(data) // 3], lambda data: data[:-50],
    lambda data: data[: data.rindex(b"\n", 0, -1) + 1],  # every line whole, the last episode's end missing
])  # fmt: skip
def test_what_a_kill_left_is_dropped_and_played_again(cut: Any, played: Any, whole: Path) -> None:
    path = whole / "metadata.jsonl"
    path.write_bytes(cut(path.read_bytes()))
    (whole / "images" / "half.part").write_bytes(b"\x89PNG")
    assert 0 < count_finished(whole) < len(EVERY)
    run_evaluation(PARTS, RandomPolicy(), whole, num_envs=1, resume=True)
    assert numbers(whole) == played[1]


def change_reward(line: str) -> str:
    return json.dumps(seal({**json.loads(line), "reward": -100.0})) + "\n"


@pytest.mark.parametrize(("change", "named"), [
    (lambda lines: [*lines[:1], *lines], "and turn 1 at its turn 1, but has .* turn 0"),
    (lambda lines: [*lines[:2], *lines[3:]], r"should have seed .* and turn \d"),
    (lambda lines: lines[1:], "and turn 0 at its turn 0, but has .* turn 1"),
    (lambda lines: [*lines, *lines], "is recorded twice"),
    (lambda lines: [change_reward(lines[0]), *lines[1:]], "pays -100"),
])  # fmt: skip
def test_doubled_and_dropped_lines_are_found_at_resume_before_a_model_is_asked(change, named, whole):
    path = whole / "metadata.jsonl"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    before = read_files(whole)
    with pytest.raises(TrajectoryError, match=named) as error:
        run_evaluation(PARTS, RandomPolicy(), whole, resume=True)
    assert "\n" not in str(error.value)
    assert not read_files(whole).items() - before.items()
    call = ["eval", "--policy", "openai:m@http://127.0.0.1:9", "--env", WALK.id, "--resume"]
    assert re.search(named, invoke(*call, "--out", whole, status=2).err)


def test_changed_code_is_refused_and_named(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = read_header(whole)["parts"][WALK.id]["code"]
    assert hashes == {name: hash_code(name) for name in ("vlgym", "toys")}
    for name in ("vlgym", "toys"):
        changed = {"vlgym": hashes["vlgym"], "toys": hashes["toys"], name: "changed"}
        monkeypatch.setattr(trajectory, "hash_code", lambda module, changed=changed: changed[module])
        with pytest.raises(UserError, match=rf"Different: parts\.vlgym/Walk-v0\.code\.{name}, "):
            run_evaluation(PARTS, RandomPolicy(), whole, resume=True)


def test_a_digest_is_of_every_source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shelf"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit")  # it is not imported
    (package / "inner" / "rules.py").write_text("PAY = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    digests = [hash_code.__wrapped__("shelf.inner.rules")]
    (package / "data.txt").write_text("no code")
    assert hash_code.__wrapped__("shelf") == digests[0]
    (package / "inner" / "rules.py").write_text("PAY = 2")
    digests.append(hash_code.__wrapped__("shelf"))
    (package / "inner" / "rules.py").rename(package / "inner" / "others.py")
    digests.append(hash_code.__wrapped__("shelf"))
    assert len({*digests}) == 3
    assert hash_code("no_such_package") is None


@pytest.mark.parametrize(("paid", "named"), [(-1.0, "pays -1 at its turn 0"), (1e308, "no finite number")])
def test_a_reward_that_its_card_excludes_ends_the_run_at_its_turn(paid, named, tmp_path, monkeypatch):
    monkeypatch.setattr(toys.Walk, "act", lambda self, action: Outcome(paid))
    with pytest.raises(FailedError, match=named):
        run_evaluation(PARTS[:1], RandomPolicy(), tmp_path / "run", num_envs=1)
    assert count_finished(tmp_path / "run") == 0


def test_an_episode_is_never_written_twice_nor_by_two_processes(whole: Path) -> None:
    header = read_header(whole)
    header.pop("sessions")
    with EvaluationFolder(whole, header, session={}, resume=True) as folder:
        assert folder.finished == EVERY
        episode = next(iter(read_trajectories(whole)))
        with pytest.raises(TrajectoryError, match=r"Episode \d of .* was played twice"):
            folder.write(episode)
        for record in episode:
            record.episode = 99
        folder.write(episode)
        with pytest.raises(TrajectoryError, match=r"Episode 99 of .* was played twice"):
            folder.write(episode)
        with pytest.raises(UserError, match="Another process is at work in"):
            EvaluationFolder(whole, header, session={}, resume=True)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"parts": PARTS[:1]}, r"parts\.vlgym/Walk-v0 grey"),
        ({"parts": [replace(PARTS[0], episodes=4), PARTS[1]]}, r"parts\.vlgym/Walk-v0\.episodes"),
        ({"parts": [replace(PARTS[0], arguments={"parser": "json"}), PARTS[1]]}, r"\.parser"),
        ({"parts": [replace(part, split="val") for part in PARTS]}, r"vlgym/Walk-v0\.split"),
        ({"layout": PromptBuilder(2, 1)}, r"parts\.vlgym/Walk-v0\.history\.turns"),
        ({"policy": "other"}, r"policy\.name"),
        ({"seed": 3}, "seed"),
        ({"spec": make_spec(summary="Walk away.")}, r"\.spec_hash"),
    ],
)
def test_another_run_is_refused_by_name_and_changes_nothing(change: dict[str, Any], named: str, whole: Path) -> None:
    before, policy, options = read_files(whole), RandomPolicy(), {"parts": PARTS, **change}
    policy.name, spec = options.pop("policy", policy.name), options.pop("spec", WALK)
    line = f"holds another run. Different: .*{named}"
    with installed(spec), pytest.raises(UserError, match=line):
        run_evaluation(policy=policy, out=whole, resume=True, **options)
    assert read_files(whole) == before


def test_a_run_is_not_begun_again_over_another(whole: Path, tmp_path: Path) -> None:
    before = read_files(whole)
    with pytest.raises(UserError, match="A run has one split, this one has test, val"):
        run_evaluation([PARTS[0], replace(PARTS[1], split="val")], RandomPolicy(), tmp_path / "split")
    with pytest.raises(UserError, match=r"holds a run already\. Continue it with --resume"):
        run_evaluation(PARTS, RandomPolicy(), whole)
    assert read_files(whole) == before
    for name, text, line in (
        ("thesis.txt", "precious", r"is not empty and holds no run\.json"),
        ("run.json", '{"format": 3}', "holds another kind of run"),
    ):
        file = tmp_path / "of others" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        with pytest.raises(UserError, match=line):
            run_evaluation(PARTS, RandomPolicy(), file.parent, resume=True)


def test_junk_in_a_folder_stops_nothing(tmp_path: Path) -> None:
    out, games = litter(tmp_path / "run"), litter(tmp_path / "games")
    command = ["eval", "--policy", "random", "--env", WALK.id, "--episodes", "2", "--out", str(out)]
    invoke(*command)
    litter(out)
    invoke(*command, "--resume")
    invoke("report", str(out))
    invoke("compare", str(out), str(out))
    invoke("export", str(out), "--to", "sft", "--out", str(litter(tmp_path / "data")))
    with installed(NIM):
        command = ["tournament", "oracle", "random", "--env", NIM.id, "--games", "1", "--out", str(games)]
        invoke(*command)
        litter(games)
        invoke(*command, "--resume")
    TrajectoryWriter(litter(tmp_path / "records"), {})
    index = Index([tmp_path])
    index.refresh()
    assert sorted(run.name for run in index.runs.values()) == ["games/games", "run"]
    assert index.problems() == []
    (litter(tmp_path / "mine") / ".gitignore").touch()
    refused = invoke("export", out, "--to", "sft", "--out", tmp_path / "mine", status=2)
    assert "is not empty" in refused.err  # it would be replaced
