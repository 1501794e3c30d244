"""report.json and report.html: their contents, in which nothing acts, and `vlgym report`."""

import base64
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from evaluations import COIN, WALK, Counting, change_header, read_rows, write_rows, write_run
from page_tags import Tags
from PIL import Image as PILImage

from vlgym.errors import RegistryFileError, TrajectoryError
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.registry.registry_file import read_registry
from vlgym.reports import writing
from vlgym.reports.compute import compute_report
from vlgym.reports.records import read_run
from vlgym.reports.text import explain_sight, list_brief, write_money, write_number, write_share
from vlgym.reports.turns import choose_episodes, show_episodes
from vlgym.reports.writing import write_report
from vlgym.types import Reply, Turn

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">\'"{{ 7*7 }}'

pytestmark = pytest.mark.usefixtures("walk_and_coin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    policies = {"shown": Counting(RandomPolicy()), "grey": Counting(ScriptedPolicy(["eh"]))}
    place = tmp_path_factory.mktemp("runs") / "random"
    write_run(place, policies, [WALK, COIN], episodes=12, pictures=["shown", "grey"], prices=(2.0, 10.0))
    write_report(place)
    return place


def test_the_written_report_is_the_computed_one_and_is_written_again_alike(folder: Path) -> None:
    files = ("report.json", "report.html")
    first = {name: (folder / name).read_bytes() for name in files}
    assert json.loads(first["report.json"]) == compute_report(folder) == write_report(folder)
    assert {name: (folder / name).read_bytes() for name in files} == first


def test_the_page_holds_the_numbers_of_the_report(folder: Path) -> None:
    report = compute_report(folder)
    text = Tags((folder / "report.html").read_text()).text
    parts = report["parts"].values()
    numbers = [value for part in parts for value in (part["success"]["rate"], part["return"]["mean"])]
    numbers.append(report["overall"]["success"]["mean"])
    words = [write_money(report["spent"]["cost"]), explain_sight(report["sight"][0]), "illegal_action"]
    assert [each for each in (*words, *map(write_number, numbers)) if each not in text] == []
    assert "not finished" not in text


ACTIVE = {"script", "link", "iframe", "object", "embed", "form", "base"}


def check_harmless(page: str) -> Tags:
    """Nothing acts on the page or comes from outside."""
    read = Tags(page)
    assert ACTIVE & {tag for tag, _ in read.tags} == set()
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on")]
    sources = [attributes["src"] or "" for tag, attributes in read.tags if tag == "img"]
    assert all(source.startswith("data:image/") for source in sources)
    assert [words for words in ("url(", "@import") if words in page] == []
    assert "default-src 'none'" in page
    return read


class Evil:
    """Writes markup wherever a policy can write."""

    name = "evil <script>alert(0)</script>"

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "note": EVIL, EVIL: [EVIL]}

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(f"{EVIL}<action>{EVIL}</action>\ud800") for _ in turns]


def test_nothing_of_a_models_output_or_of_a_record_acts_on_the_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", Evil(), episodes=2, versions={EVIL: EVIL})
    rows = read_rows(folder)
    for row in rows:
        prompt = json.loads(row["prompt"])
        prompt[-1]["content"][-1]["text"] = EVIL
        row.update(prompt=json.dumps(prompt), parse=EVIL, actions=[EVIL], invalid=row["turn"] % 2 == 0)
    write_rows(folder, rows)
    change_header(folder, sessions=[{"command": [EVIL], "started": EVIL}, "x", None])
    write_report(folder)
    read = check_harmless((folder / "report.html").read_text(encoding="utf-8"))
    assert [tag for tag, _ in read.tags].count("img") == 16
    assert read.text.count("<script>alert(1)</script>") > 20
    assert "49" not in re.findall(r"'\"(.*?)<", read.text)
    assert "{{ 7*7 }}" in read.text


def test_the_part_of_a_reply_that_was_read_as_the_action_is_marked(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", ScriptedPolicy(["I go. <action>left</action> Done."]), episodes=3)
    write_report(folder)
    marked = Tags((folder / "report.html").read_text()).marked
    assert marked[0] == "marked"  # the legend
    assert set(marked[1:]) == {"left"}


def open_picture(url: str) -> PILImage.Image:
    return PILImage.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")


def test_the_pictures_on_the_page_are_those_that_the_model_saw(folder: Path) -> None:
    (turns,) = show_episodes(read_run(folder), [(WALK, 3)])
    rows = [row for row in read_rows(folder) if (row["part"], row["episode"]) == (WALK, 3)]
    page = (folder / "report.html").read_text()
    for turn, row in zip(turns, rows, strict=True):
        assert turn.record is not None
        (name,) = [part for part in turn.record.messages[-1]["content"] if part["type"] == "image"]
        with PILImage.open(folder / row["file_name"]) as drawn:
            assert np.array_equal(open_picture(turn.find(name)), drawn.convert("RGB"))
        assert (turn.number, turn.record.reply) == (row["turn"], row["reply"])
        assert f'src="{turn.find(name)}"' in page


def test_large_pictures_are_made_smaller_and_of_a_long_episode_both_ends_are_shown(tmp_path: Path) -> None:
    arguments = {"max_turns": 20, "image_size": (300, 900)}
    write_run(tmp_path, ScriptedPolicy(["no"]), episodes=1, arguments=arguments, changed=True)
    write_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    urls = [attributes["src"] or "" for tag, attributes in Tags(page).tags if tag == "img"]
    assert open_picture(urls[0]).size == (384, 128)
    assert re.findall(r'class="what">turn (\d+)', page) == ["1", "2", "3", "4", "5", "18", "19", "20"]
    assert "12 turns are not shown" in page


def test_five_won_and_five_lost_episodes_are_chosen_at_even_distances(folder: Path) -> None:
    run = read_run(folder)
    chosen = choose_episodes(run)
    for won, places in ((True, chosen[:5]), (False, chosen[5:])):
        played = [(key, each[0].episode, each[-1].success) for key in (COIN, WALK) for each in run.played[key]]
        ended = [(key, number) for key, number, success in played if success == won]
        assert len(places) == 5
        assert (places[0], places[-1]) == (ended[0], ended[-1])
        assert places == sorted(places, key=ended.index)
    assert not [key for key, _ in chosen if key.endswith("grey")]


def test_a_broken_picture_is_one_clear_line_and_nothing_is_written(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", OraclePolicy(), episodes=1)
    for path in (folder / "images").iterdir():
        path.write_bytes(b"GIF89a")
    with pytest.raises(TrajectoryError, match=r"images/\w+\.png: UnidentifiedImageError"):
        write_report(folder)
    assert not list(folder.glob("report.*"))


def test_an_unfinished_run_says_so_on_the_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", RandomPolicy(), episodes=6, finish=2)
    write_report(folder)
    assert "This run is not finished: 2 of 6 planned episodes" in (folder / "report.html").read_text()
    (folder / "metadata.jsonl").write_text("")
    assert write_report(folder)["overall"] == {"parts": 0, "episodes": 0, "planned": 6, "replies": 0}
    assert "No episode has ended yet" in (folder / "report.html").read_text()


def test_the_terminals_table_has_one_row_an_environment_at_80_columns() -> None:
    figures = {"mean": -0.85, "rate": 0.85, "low": 0.75, "high": 0.91}
    row = {
        "episodes": 100, "planned": 100, "success": figures, "score": figures, "normalized": figures,
        "sight_score": figures, "invalid": figures, "turns": {"mean": 117.5},
    }  # fmt: skip
    entries = {env_id for env_id, entry in read_registry().items() if not entry["spec"].replaced_by}
    headers, rows = list_brief({"parts": dict.fromkeys(sorted(entries), row), "overall": row})
    assert headers == ["environment", "success", "score", "norm.", "sight", "invalid", "turns"]
    wide = [widths for widths in rows if sum(map(len, widths)) + 2 * (len(widths) - 1) > 80]
    assert wide == []
    assert rows[-1][0] == "mean"
    headers, rows = list_brief({"parts": {"vlgym/A-v0": {**row, "episodes": 7}}, "overall": row})
    assert (headers[1], rows[0][1], rows[1][1]) == ("ended", "7 of 100", "–")


@pytest.mark.parametrize(("written", "expected"), [
    (write_number(-0.001), "0.00"), (write_number(-1.5), "−1.50"), (write_number(0.2, signed=True), "+0.20"),
    (write_number(None), "–"), (write_money(0.0123), "$0.012"), (write_money(1234.5), "$1,234.50"),
    (write_money(0), "$0.00"), (write_share(0.004), "< 1 %"), (write_share(0), "0 %"), (write_share(0.126), "13 %"),
])  # fmt: skip
def test_numbers_are_written_for_people(written: str, expected: str) -> None:
    assert written == expected


def test_the_command_prints_the_table_and_writes_the_files(folder: Path) -> None:
    for name in ("report.json", "report.html"):
        (folder / name).unlink()
    output = invoke("report", folder).out
    lines = output.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("environment  "))
    assert lines[head].split()[:3] == ["environment", "success", "score"]
    rows = [line.split()[0] for line in lines[head + 1 :]]
    parts = json.loads((folder / "report.json").read_text())["parts"]
    names = [*(key.split()[0].removeprefix("vlgym/") for key in parts), "mean"]
    assert rows[: len(names)] == names
    assert "counting, split test" in output
    assert f"{WALK} grey: " in output
    assert (folder / "report.html").exists()


def test_readings_are_told_where_replies_were_not_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = ["<answer>right</answer>", "<action>right</action>", "<action>right</action>", "no"]
    auto, title = {"arguments": {"parser": "auto"}}, "How replies were read"
    made = write_run(tmp_path / "a", ScriptedPolicy(replies), [WALK, COIN], episodes=9, **auto)
    monkeypatch.setenv("COLUMNS", "90")
    lines = invoke("report", made).out.splitlines()
    part = compute_report(made)["parts"][WALK]
    forms, valid = part["forms"], part["all_valid"]
    at = next(at for at, line in enumerate(lines) if line.split()[:3] == ["part", "invalid", "forms"])
    assert lines[at + 1].startswith(COIN)
    assert lines[at + 1].endswith("– of 0")
    cells = [
        WALK, f"no_action {part['invalid']['codes']['no_action']}", f"tag {forms['tag']}, answer {forms['answer']}",
        f"{valid['rate']:.2f} [{valid['low']:.2f}, {valid['high']:.2f}] of {valid['episodes']}",
    ]  # fmt: skip
    assert [cell.strip() for cell in lines[at + 2].split("  ") if cell] == cells
    text = Tags((made / "report.html").read_text()).text
    assert [words for words in (title, *cells) if words not in text] == []
    plain = write_run(tmp_path / "b", OraclePolicy(), episodes=2, **auto)
    assert "forms" not in invoke("report", plain).out
    assert title not in (plain / "report.html").read_text()


@pytest.mark.parametrize(("success", "earned", "words"), [
    ((0.1, 0.4), (0.1, 0.4), "wins more with the pictures"),
    ((-0.4, -0.1), (0.1, 0.4), "wins less with the pictures"),
    ((-0.1, 0.4), (0.1, 0.4), "earns more with the pictures; whether it wins more is not certain"),
    ((-0.1, 0.4), (-0.1, 0.4), "does no better with the pictures than without"),
    ((-0.9, 0.9), (), "does no better with the pictures than without"),
])  # fmt: skip
def test_a_control_in_words(success: tuple[float, ...], earned: tuple[float, ...], words: str) -> None:
    ends = (("success", success), ("return", earned))
    row = {name: dict(zip(("low", "high"), each, strict=False)) for name, each in ends}
    assert words in explain_sight(row)
    assert "No episode" in explain_sight({"pairs": 0})


def test_a_changed_registry_stops_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_run(tmp_path / "run", RandomPolicy(), episodes=1)
    monkeypatch.setattr(writing, "find_edit", lambda: "registry.yaml was changed.")
    with pytest.raises(RegistryFileError, match="was changed"):
        write_report(place)
    assert not (place / "report.json").exists()
