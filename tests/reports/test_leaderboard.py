"""The board: who stands on it and where, who is refused and why, and that it neither acts nor overwrites."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from evaluations import COIN, WALK, change_header, read_rows, toys_installed, write_rows, write_run
from toys import installed, make_entry, make_spec
from typer.testing import CliRunner

from vlgym.cli.app import app, main
from vlgym.errors import UserError
from vlgym.making import make
from vlgym.policies import IdlePolicy, OraclePolicy, RandomPolicy
from vlgym.prompts import PromptBuilder
from vlgym.recorded import hash_texts
from vlgym.registry_file import read_registry
from vlgym.reports import results
from vlgym.reports.compute import compute_report
from vlgym.reports.leaderboard import build_site, name_pages, read_published
from vlgym.reports.records import Part
from vlgym.reports.results import find_mismatch, find_other_number, name_suite, read_result
from vlgym.reports.writing import write_report
from vlgym.suites import SuitePart
from vlgym.trajectory import describe_run


@pytest.fixture(scope="module", autouse=True)
def _toys() -> Iterator[None]:
    with toys_installed():
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three results with their reports: idle, random and oracle."""
    folder = tmp_path_factory.mktemp("finished")
    for policy in (IdlePolicy(), RandomPolicy(), OraclePolicy()):
        write_report(write_run(folder / policy.name, policy, episodes=8))
    return folder


@pytest.fixture
def board(finished: Path, tmp_path: Path) -> Path:
    """A copy of the results that a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "results"))


class Page(HTMLParser):
    """Tags, and the texts of the cells of each table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell:
            self.tables[-1][-1][-1] += data


def test_results_stand_best_first_with_the_numbers_of_their_reports(board: Path, tmp_path: Path) -> None:
    made = build_site(board, tmp_path / "site")
    page = Page((tmp_path / "site" / "index.html").read_text())
    assert [row[0] for row in page.tables[0]] == ["policy", "oracle", "random", "idle"]
    assert made["refused"] == made["pages_left_out"] == []
    assert json.loads((tmp_path / "site" / "leaderboard.json").read_text()) == made
    for row in made["results"]:
        part = compute_report(board / row["result"])["parts"][WALK]
        (line,) = row["parts"]
        assert line["success"] == {"mean": part["success"]["rate"], **{k: part["success"][k] for k in ("low", "high")}}
        assert line["normalized"] == pytest.approx(part["normalized"])
        assert line["returned"] == part["return"]["mean"]
        assert row["numbers"] == "computed from the records"
        linked = (tmp_path / "site" / row["page"]).read_text()
        assert linked == (board / row["result"] / "report.html").read_text()
        assert ("a", {"href": row["page"]}) in page.tags


def test_the_sight_score_stands_on_the_board_where_the_blind_floor_was_measured(finished: Path, tmp_path: Path) -> None:
    walk = make_spec(WALK)
    entry = make_entry(walk, **hash_texts(make(WALK)))
    blind = {**entry["floor"], "return": 0.5, "policy": "searcher", "success_policy": "searcher"}
    coin = make_spec(COIN, "toys:Coin", max_turns=6, reward_range=(-1.0, 2.0), summary="Say heads three times.")
    known = {WALK: {**entry, "blind": blind}, COIN: make_entry(coin, **hash_texts(make(COIN)))}
    with installed(walk, coin, known=known):
        policy = OraclePolicy(fallback=True)
        write_report(write_run(tmp_path / "results" / "both", policy, [WALK, COIN], episodes=3))
        write_report(write_run(tmp_path / "results" / "one", IdlePolicy(), [COIN], episodes=3))
        made = build_site(tmp_path / "results", tmp_path / "site")
    lines = {(row["policy"], line["env_id"]): line["sight"] for row in made["results"] for line in row["parts"]}
    assert lines["oracle", WALK]["mean"] == pytest.approx(1.0)
    assert lines["oracle", COIN] is None
    page = Page((tmp_path / "site" / "index.html").read_text())
    place = page.tables[0][0].index("sight score")
    assert [row[place].split() for row in page.tables[0][1:]] == [["1.00[1.00,", "1.00]", "1", "of", "2"], ["–"]]
    (table,) = [
        table for table in page.tables[1:] if "sight score" in table[0] and table[1][1] == "3" and len(table) == 2
    ]
    assert table[1][table[0].index("sight score")] == "1.00[1.00, 1.00]"


def test_a_page_shows_families_environments_and_what_is_only_published(board: Path, tmp_path: Path) -> None:
    build_site(board, tmp_path / "site")
    page = Page((tmp_path / "site" / "index.html").read_text())
    assert "toys 1 environment" in page.text
    assert WALK in page.text
    assert "Published, not measured here" in page.text
    (table,) = [table for table in page.tables if ["GPT-4o", "34.28", "35.50", "46.09", "53.03", "21.20"] in table]
    assert table[0][0] == "published"
    assert "MageBench, arXiv 2412.04531, table 2" in page.text
    assert "No result was refused" in page.text


def test_more_environments_come_before_a_better_score_on_fewer(board: Path, tmp_path: Path) -> None:
    coin = make_spec(COIN, "toys:Coin", max_turns=6, reward_range=(-1.0, 2.0), summary="Say heads three times.")
    hashes = hash_texts(make(COIN))
    with installed(coin, known={COIN: make_entry(coin, **hashes)}):
        write_report(write_run(board / "both", IdlePolicy(), [WALK, COIN], episodes=3))
        build_site(board, tmp_path / "site")
    page = Page((tmp_path / "site" / "index.html").read_text())
    known = len(read_registry()) + 2  # and the two toys
    assert [row[1] for row in page.tables[0]][1:] == [f"{count} of {known}" for count in (2, 1, 1, 1)]
    assert [row[0] for row in page.tables[0]][1:] == ["idle (both)", "oracle", "random", "idle (idle)"]


@pytest.fixture
def alone(finished: Path, tmp_path: Path) -> Path:
    """A copy of one result."""
    return Path(shutil.copytree(finished / "random", tmp_path / "alone"))


def change_part(folder: Path, **changes: Any) -> None:
    header = json.loads((folder / "run.json").read_text())
    header["parts"][WALK].update(changes)
    change_header(folder, parts=header["parts"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spec_hash": "0123"}, r"was played with another card \(0123\) than registry.yaml's"),
        ({"prompt_hash": "0123"}, r"was played with another prompt \(0123\)"),
        ({"parser_version": 9}, r"was played with another parser \(tag-v9\) than registry.yaml's \(tag-v1\)"),
        ({"history": {"turns": 3, "images": 1}}, "was played with history"),
        ({"changed": True}, "was played under other arguments"),
        ({"items": [{"max_turns": 4}]}, "was played under other arguments"),
        ({"given": {"invalid_action": "random"}}, "invalid_action='random', which is not the environment's own"),
        ({"given": {"parser": "tag", "invalid_penalty": 0.5}}, "invalid_penalty=0.5, which is not"),
    ],
)
@pytest.mark.parametrize("kept", ["records", "report"])
def test_a_result_under_other_conditions_is_refused(
    alone: Path, changes: dict[str, Any], reason: str, kept: str
) -> None:
    if kept == "report":
        strip(alone)
    change_part(alone, **changes)
    with pytest.raises(UserError, match=rf"^{WALK} .*{reason}"):
        read_result(alone, "alone")


def test_a_refused_result_is_named_with_its_reason_and_the_others_stand(board: Path, tmp_path: Path) -> None:
    change_part(board / "random", prompt_hash="0123")
    made = build_site(board, tmp_path / "site")
    (row,) = made["refused"]
    assert row["result"] == "random"
    assert [each["result"] for each in made["results"]] == ["idle", "oracle"]
    page = Page((tmp_path / "site" / "index.html").read_text())
    assert f"random: {row['reason']}" in page.text
    assert [row[0] for row in page.tables[0]] == ["policy", "oracle", "idle"]


def test_real_prompts_of_another_layout_or_parser_are_refused(board: Path, tmp_path: Path) -> None:
    write_run(board / "json", RandomPolicy(), episodes=2, arguments={"parser": "json"})
    write_run(board / "history", RandomPolicy(), episodes=2, builder=PromptBuilder(2, 2))
    reasons = {row["result"]: row["reason"] for row in build_site(board, tmp_path / "site")["refused"]}
    assert set(reasons) == {"json", "history"}
    assert "another prompt" in reasons["json"]
    assert "history {'turns': 2, 'images': 2}, not {'turns': 0, 'images': 1}" in reasons["history"]


def test_other_splits_unknown_ids_and_unfinished_runs_are_refused(board: Path, tmp_path: Path) -> None:
    write_run(board / "val", RandomPolicy(), episodes=2, split="val")
    write_run(board / "coin", RandomPolicy(), [COIN], episodes=2)
    write_run(board / "begun", RandomPolicy(), episodes=5, finish=3)
    write_run(board / "broken", RandomPolicy(), episodes=2)
    (board / "broken" / "metadata.jsonl").write_text("{\n")
    (board / "other").mkdir()
    (board / "other" / "run.json").write_text("[]")
    reasons = {row["result"]: row["reason"] for row in build_site(board, tmp_path / "site")["refused"]}
    assert reasons["val"] == f"{WALK} was played on split val; the board holds test"
    assert reasons["coin"] == f"{COIN} is not in registry.yaml"
    assert reasons["begun"] == f"is not finished: 3 of 5 episodes of {WALK}"
    assert "line 1: JSONDecodeError" in reasons["broken"]
    assert "no evaluation" in reasons["other"]


def strip(folder: Path) -> None:
    """Leave what a kept result holds: run.json and the report."""
    (folder / "metadata.jsonl").unlink()
    shutil.rmtree(folder / "images")


def test_a_result_is_read_without_its_records_and_pictures(board: Path, tmp_path: Path) -> None:
    whole = build_site(board, tmp_path / "whole")
    for name in ("idle", "random", "oracle"):
        strip(board / name)
    made = build_site(board, tmp_path / "site")
    assert [row["parts"] for row in made["results"]] == [row["parts"] for row in whole["results"]]
    assert {row["numbers"] for row in made["results"]} == {"the report's own"}
    assert (tmp_path / "site" / "pages" / "oracle.html").read_text() == (board / "oracle" / "report.html").read_text()
    (board / "idle" / "report.html").unlink()
    (board / "random" / "report.json").unlink()
    made = build_site(board, tmp_path / "site")
    assert [(row["result"], row["page"]) for row in made["results"]] == [
        ("idle", None),
        ("oracle", "pages/oracle.html"),
    ]
    assert made["refused"] == [{"result": "random", "reason": "holds neither metadata.jsonl nor report.json"}]
    assert sorted(path.name for path in (tmp_path / "site" / "pages").iterdir()) == ["oracle.html"]


def change_report(folder: Path, place: str, value: Any) -> None:
    """Set a value of report.json, given by its dotted place; parts are named `*`."""
    report = json.loads((folder / "report.json").read_text())
    *path, last = [WALK if name == "*" else name for name in place.split(".")]
    inner = report
    for name in path:
        inner = inner[name]
    inner[last] = value
    (folder / "report.json").write_text(json.dumps(report))


@pytest.mark.parametrize(
    "place", ["parts.*.success.rate", "parts.*.return.mean", "overall.normalized.high", "spent.replies"]
)
def test_a_report_with_other_numbers_than_its_records_give_is_refused(alone: Path, place: str) -> None:
    change_report(alone, place, 0.77)
    named = re.escape(place.replace("*", WALK))
    with pytest.raises(UserError, match=rf"^report\.json has another {named} than its records give"):
        read_result(alone, "alone")


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        ("parts.*.success.rate", 0.99, "success of"),
        ("parts.*.success.wins", 8, "success of"),
        ("parts.*.success.low", 0.5, "success of"),
        ("parts.*.success.trials", 800, "success of"),
        ("parts.*.success.trials", 1, "success of"),
        ("parts.*.return.mean", 0.99, "normalized score of"),
        ("parts.*.normalized.mean", 0.99, "normalized score of"),
        ("parts.*.normalized.low", 0.99, "interval of"),
        ("parts.*.floor.return", -5.0, "floor of vlgym/Walk-v0 is"),
        ("parts.*.episodes", 9, "episodes of"),
        ("parts.*.planned", 9, "episodes of"),
        ("policy.name", "better", "policy or split"),
        ("parts", {}, "parts"),
        ("parts.*.success", None, "is not as `vlgym report` writes it"),
        ("parts.*.success.rate", "high", "'high' is no number"),
        pytest.param("parts.*.success.trials", 10**400, "is no number", id="huge"),
        ("parts.*.episodes", "8", "'8' is no number"),
        ("parts.*.return.se", "<b>", "is not as `vlgym report` writes it"),
        ("parts.*.return.mean", float("nan"), "nan is no number"),
    ],
)
def test_without_records_a_report_that_contradicts_itself_or_the_registry_is_refused(
    alone: Path, place: str, value: Any, reason: str
) -> None:
    strip(alone)
    read_result(alone, "alone")
    change_report(alone, place, value)
    with pytest.raises(UserError, match=reason):
        read_result(alone, "alone")


@pytest.mark.parametrize("text", ["{", "[]", "3", "[" * 100_000])
def test_without_records_a_report_that_cannot_be_read_is_refused(alone: Path, text: str) -> None:
    strip(alone)
    (alone / "report.json").write_text(text)
    with pytest.raises(UserError, match=r"report\.json"):
        read_result(alone, "alone")


def test_two_reports_are_equal_up_to_the_last_digits() -> None:
    report = {"a": {"b": [1.0, {"c": 0.1}]}, "d": None, "e": "x"}
    assert find_other_number(report, {"a": {"b": [1.0, {"c": 0.1 + 1e-15}]}, "d": None, "e": "x"}) is None
    assert find_other_number(report, {"a": {"b": [1.0, {"c": 0.2}]}, "d": None, "e": "x"}) == "a.b.1.c"
    assert find_other_number(report, {"a": {"b": [1.0]}, "d": None, "e": "x"}) == "a.b"
    assert find_other_number(report, {"a": report["a"], "e": "y"}) == "e"
    assert find_other_number({"a": True}, {"a": 1.5}) == "a"


def test_a_page_that_could_act_is_left_out_and_the_numbers_stand(board: Path, tmp_path: Path) -> None:
    strip(board / "random")
    path = board / "random" / "report.html"
    path.write_text(path.read_text().replace("</main>", "<script>alert(1)</script></main>"))
    made = build_site(board, tmp_path / "site")
    assert [row["result"] for row in made["results"]] == ["idle", "oracle", "random"]
    assert made["pages_left_out"] == [
        {"result": "random", "reason": "report.html is none that `vlgym report` wrote: a tag <script>"}
    ]
    assert sorted(path.name for path in (tmp_path / "site" / "pages").iterdir()) == ["idle.html", "oracle.html"]
    assert "a tag <script>" in Page((tmp_path / "site" / "index.html").read_text()).text


def test_names_are_shown_and_never_act(board: Path, tmp_path: Path) -> None:
    evil = '<script>alert(1)</script>"onload="x'
    folder = board / "a <b>\u202e\x1b[31m"
    shutil.move(board / "random", folder)
    change_header(folder, policy={"name": evil})
    write_report(folder)
    (board / "bad <i>\u202e\x1b[2J").mkdir()
    (board / "bad <i>\u202e\x1b[2J" / "run.json").write_text('{"kind": "<u>"}')
    made = build_site(board, tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    page = Page(text)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not {tag for tag, _ in page.tags} & {"i", "u", "iframe"}
    assert evil in page.text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert [row["result"] for row in made["refused"]] == ["bad <i>??[2J"]
    assert all(re.fullmatch(r"pages/[A-Za-z0-9._-]+\.html", row["page"]) for row in made["results"])


def test_the_pages_own_script_is_the_only_one_that_may_run(board: Path, tmp_path: Path) -> None:
    build_site(board, tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = dict(Page(text).tags)["meta"]
    metas = [attributes for tag, attributes in Page(text).tags if attributes.get("http-equiv")]
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in (metas[0]["content"] or "")
    assert "default-src 'none'" in (metas[0]["content"] or "")


def test_two_results_never_share_a_page() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    names = ["a/b", "a b", "a-b", "A-B", "..", "ä", "x" * 300]
    pages = name_pages([Named(name) for name in names])  # type: ignore[list-item]
    assert len({page.lower() for page in pages.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*\.html", page) for page in pages.values())


def test_a_folder_that_is_no_board_is_never_written_to(board: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "index.html").write_text("precious")
    with pytest.raises(UserError, match="thesis is not empty and holds no board; choose another folder"):
        build_site(board, thesis)
    (thesis / "leaderboard.json").write_text('{"kind": "mine"}')
    with pytest.raises(UserError, match="holds no board"):
        build_site(board, thesis)
    assert (thesis / "index.html").read_text() == "precious"
    with pytest.raises(UserError, match=r"is a file|is no folder"):
        build_site(board, thesis / "index.html")
    (tmp_path / "empty").mkdir()
    assert len(build_site(board, tmp_path / "empty")["results"]) == 3


def test_a_board_is_made_again_in_its_place_and_only_its_own_old_pages_go(board: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_site(board, site)
    (site / "pages" / "mine.html").write_text("mine")
    (tmp_path / "precious.html").write_text("precious")
    held = json.loads((site / "leaderboard.json").read_text())
    held["results"] += [{"page": "pages/../../precious.html"}, {"page": "../precious.html"}, {"page": 3}, 4]
    (site / "leaderboard.json").write_text(json.dumps(held))
    shutil.rmtree(board / "random")
    build_site(board, site)
    assert sorted(path.name for path in (site / "pages").iterdir()) == ["idle.html", "mine.html", "oracle.html"]
    assert (tmp_path / "precious.html").exists()


def test_results_lie_at_any_depth_and_the_board_may_lie_among_them(board: Path) -> None:
    (board / "models" / "new").mkdir(parents=True)
    shutil.move(board / "random", board / "models" / "new" / "random")
    first = build_site(board, board / "site")
    assert [row["result"] for row in first["results"]] == ["idle", "models/new/random", "oracle"]
    shutil.copytree(board / "idle", board / "site" / "pages" / "idle")
    assert build_site(board, board / "site") == first


def test_a_folder_without_results_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no result, which is a folder with a run\.json"):
        build_site(tmp_path, tmp_path / "site")
    with pytest.raises(UserError, match="nowhere is no folder"):
        build_site(tmp_path / "nowhere", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_items_of_a_recorded_suite_are_no_other_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = ({"max_turns": 2}, {"max_turns": 8})
    recorded = {"walks": {WALK: SuitePart("walks", WALK, items, planners=("online",)).to_dict()}}
    monkeypatch.setattr(results, "_suites", lambda: recorded)
    folder = write_run(tmp_path / "a", OraclePolicy(), episodes=1, items=items, changed=True)
    (line,) = read_result(folder, "a").lines
    assert (line.suite, line.episodes, line.normalized) == ("walks", 2, None)
    build_site(tmp_path, tmp_path / "site")
    page = Page((tmp_path / "site" / "index.html").read_text())
    assert f"{WALK} walks online" in page.text
    assert "Without a normalized score, so below by environment only: oracle" in page.text
    other = write_run(tmp_path / "b", OraclePolicy(), episodes=1, items=items[:1], changed=True)
    with pytest.raises(UserError, match="was played under other arguments"):
        read_result(other, "b")


def test_the_suites_of_the_registry_are_found_by_their_items() -> None:
    from vlgym.registry import get_registry

    (part,) = [part for part in get_registry().suite("magebench-mini") if part.env_id == "vlgym/Sokoban-v0"]
    played = Part("x", part.env_id, "global", "shown", part.items, 1, 3, True, {})
    assert name_suite(played) == "magebench-mini"
    online_only = get_registry().suite("magebench-mini")[0]
    assert online_only.planners == ("online",)
    names = [
        name_suite(Part("x", online_only.env_id, planner, "shown", online_only.items, 1, 1, True, {}))
        for planner in ("online", "global")
    ]
    assert names == ["magebench-mini", ""]
    assert name_suite(Part("x", part.env_id, "global", "shown", part.items[1:], 1, 3, True, {})) == ""


def test_under_the_global_planner_the_installed_environment_says_what_is_due() -> None:
    spec = make_spec("vlgym/Plan-v0", planners=("online", "global"))
    with installed(spec, known={spec.id: make_entry(spec)}):
        env = make(spec.id, planner="global")
        entry = describe_run([env])["environments"][spec.id]
        part = Part("x", spec.id, "global", "shown", ({},), 4, 1, False, entry)
        assert find_mismatch(part, "test") is None
        wrong = Part("x", spec.id, "global", "shown", ({},), 4, 1, False, {**entry, "prompt_hash": "0"})
        assert "another prompt" in (find_mismatch(wrong, "test") or "")
    with installed(known={"vlgym/Gone-v0": make_entry(make_spec("vlgym/Gone-v0"))}):
        gone = Part("x", "vlgym/Gone-v0", "global", "shown", ({},), 4, 1, False, entry)
        assert "cannot be checked under planner global" in (find_mismatch(gone, "test") or "")


def test_controls_stand_on_no_board(tmp_path: Path) -> None:
    policies = {"shown": OraclePolicy(), "grey": IdlePolicy()}
    folder = write_run(tmp_path / "a", policies, episodes=3, pictures=["shown", "grey"])
    assert len(read_result(folder, "a").lines) == 1
    grey = write_run(tmp_path / "b", OraclePolicy(), episodes=3, pictures=["grey"])
    with pytest.raises(UserError, match="has no part with its pictures shown"):
        read_result(grey, "b")


def test_every_published_row_fills_its_table_and_names_known_environments() -> None:
    known = read_registry()
    tables = read_published()
    assert len(tables) == 3
    for table in tables:
        assert set(table) == {"benchmark", "source", "unit", "compares", "columns", "environments", "rows"}
        assert re.search(r"arXiv \d{4}\.\d{5}, table \d", table["source"])
        assert len(table["environments"]) == len(table["columns"])
        assert set(table["environments"]) <= set(known)
        assert {len(row) for row in table["rows"]} == {len(table["columns"]) + 1}
        cells = [cell for row in table["rows"] for cell in row[1:]]
        assert all(
            isinstance(cell, float) or cell == "IFE" or re.fullmatch(r"\d\.\d\d ± \d\.\d\d", cell) for cell in cells
        )


def test_the_command_names_what_it_refused(board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_part(board / "random", prompt_hash="0123")
    assert main(["leaderboard", str(board), "--out", str(tmp_path / "site")]) == 0
    said = capsys.readouterr()
    assert said.out == f"2 result(s), 1 refused; written: {tmp_path / 'site' / 'index.html'}\n"
    assert said.err.startswith(f"refused: random: {WALK} was played with another prompt (0123)")
    assert said.err.count("\n") == 1
    result = CliRunner().invoke(app, ["leaderboard", str(board)])
    assert result.exit_code == 2


def test_records_of_which_a_picture_is_missing_are_refused(board: Path, tmp_path: Path) -> None:
    shutil.rmtree(board / "random" / "images")
    (row,) = build_site(board, tmp_path / "site")["refused"]
    assert "No such image" in row["reason"]
    rows = read_rows(board / "idle")
    write_rows(board / "idle", rows[:-1])
    reasons = {row["result"]: row["reason"] for row in build_site(board, tmp_path / "site")["refused"]}
    assert "report.json has another" in reasons["idle"]
