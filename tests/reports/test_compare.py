"""Pairs of runs and the table of results: hand-made numbers, refusals, and `vlgym compare`."""

import json
import math
import random
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import invoke
from evaluations import COIN, WALK, change_header, read_rows, write_rows, write_run
from toys import make_walk

from vlgym.env.prompts import PromptBuilder
from vlgym.errors import TrajectoryError, UserError
from vlgym.intervals import wilson_interval
from vlgym.play.policies import IdlePolicy, OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.reports.compare import agree, compare_runs, find_mcnemar_p, write_play_command
from vlgym.reports.sampling import share_difference_interval
from vlgym.reports.text import list_results
from vlgym.reports.writing import write_report

pytestmark = pytest.mark.usefixtures("walk_and_coin")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Walk and Coin, 20 episodes each: always to the right, at random, and by the oracle."""
    place = tmp_path_factory.mktemp("runs")
    always = ScriptedPolicy(["<action>right</action>"])
    policies = (always, RandomPolicy(), OraclePolicy(fallback=True))
    return [write_run(place / each.name, each, [WALK, COIN], episodes=20) for each in policies]


def compare(*folders: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compare two runs; return the pair and its part Walk."""
    (pair,) = compare_runs(folders)["pairs"]
    return pair, pair["parts"].get(WALK, {})


def outcomes(folder: Path) -> dict[int, tuple[bool, float]]:
    """Seed of an episode of Walk -> success and return."""
    rows = [row for row in read_rows(folder) if row["part"] == WALK]
    earned = Counter[int]()
    for row in rows:
        earned[row["seed"]] += row["reward"]
    return {row["seed"]: (row["success"], earned[row["seed"]]) for row in rows}


def exact_p(first: int, second: int) -> float:
    """Twice the smaller tail of a fair coin's binomial distribution."""
    n, most = first + second, min(first, second)
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(most + 1)) / 2**n)


def test_differences_lists_and_the_test_are_those_worked_out_by_hand(runs: list[Path]) -> None:
    pair, part = compare(*runs[:2])
    a, b = map(outcomes, runs[:2])
    first = {seed for seed in a if a[seed][0] and not b[seed][0]}
    second = {seed for seed in a if b[seed][0] and not a[seed][0]}
    differences = [a[seed][1] - b[seed][1] for seed in a]
    assert (pair["first"], pair["second"]) == ("scripted", "random")
    assert min(len(first), len(second)) > 0
    assert {row["seed"] for row in part["won_by_first"]} == first
    assert {row["seed"] for row in part["won_by_second"]} == second
    assert part["mcnemar_p"] == pytest.approx(exact_p(len(first), len(second)))
    assert (part["pairs"], part["only_first"], part["only_second"]) == (20, 0, 0)
    success, earned = part["success"], part["return"]
    assert success["difference"] == pytest.approx((len(first) - len(second)) / 20)
    assert success["first"] == pytest.approx(sum(won for won, _ in a.values()) / 20)
    assert success["low"] < success["difference"] < success["high"]
    assert earned["difference"] == pytest.approx(sum(differences) / 20)
    generator = random.Random(3)
    again = sorted(sum(generator.choices(differences, k=20)) / 20 for _ in range(4000))
    assert (earned["low"], earned["high"]) == pytest.approx((again[100], again[-101]), abs=0.06)


def test_an_interval_does_not_exclude_0_where_the_exact_test_does_not_reject() -> None:
    few = {"difference": 1.0, "low": 0.07, "high": 1.0}
    assert agree(few, find_mcnemar_p(2, 0)) == {"difference": 1.0, "low": 0.0, "high": 1.0}
    assert agree(few, find_mcnemar_p(6, 0)) == few


def test_over_all_each_part_counts_once_and_pairs_are_pooled(runs: list[Path]) -> None:
    pair, walk = compare(runs[2], runs[1])
    parts, overall = [*pair["parts"].values()], pair["overall"]
    shares = [part["success"] for part in parts]
    mean = sum(share["difference"] for share in shares) / 2
    below = math.hypot(*(share["difference"] - share["low"] for share in shares)) / 2
    assert overall["parts"] == 2
    assert overall["success"]["difference"] == pytest.approx(mean)
    assert overall["success"]["low"] == pytest.approx(mean - below)
    sides = ("won_by_first", "won_by_second")
    won = [sum(len(part[side]) for part in parts) for side in sides]
    assert [overall[side] for side in sides] == won
    assert overall["mcnemar_p"] == pytest.approx(exact_p(*won))
    # Coin has neither floor nor ceiling; Walk's are 0.25 and 1.
    assert overall["normalized"]["parts"] == 1
    normalized = walk["return"]["difference"] / 0.75
    assert overall["normalized"]["difference"] == pytest.approx(normalized)


def test_mcnemars_exact_test_is_the_binomial_one() -> None:
    for pair in ((0, 0), (1, 0), (5, 0), (9, 2), (3, 3), (2, 13), (150, 140)):
        assert find_mcnemar_p(*pair) == pytest.approx(exact_p(*pair))


@pytest.mark.parametrize(("both", "first", "second", "neither", "phi"), [
    (36, 12, 2, 0, -24 / math.sqrt(48 * 2 * 38 * 12)),
    # A positive correlation is corrected for continuity.
    (20, 8, 2, 10, (20 * 10 - 8 * 2 - 40 / 2) / math.sqrt(28 * 12 * 22 * 18)),
])  # fmt: skip
def test_the_interval_of_paired_shares_is_newcombes(both, first, second, neither, phi):
    """Newcombe (1998), method 10."""
    n = both + first + second + neither
    pairs = [(1.0, 1.0)] * both + [(1.0, 0.0)] * first + [(0.0, 1.0)] * second + [(0.0, 0.0)] * neither
    p, q = (both + first) / n, (both + second) / n
    (a, b), (c, d) = wilson_interval(both + first, n), wilson_interval(both + second, n)
    low = p - q - math.sqrt((p - a) ** 2 - 2 * phi * (p - a) * (d - q) + (d - q) ** 2)
    high = p - q + math.sqrt((b - p) ** 2 - 2 * phi * (b - p) * (q - c) + (q - c) ** 2)
    sides = ({seed: [pair[side]] for seed, pair in enumerate(pairs)} for side in (0, 1))
    assert share_difference_interval(*sides) == pytest.approx((low, high))
    assert neither or (low, high) == pytest.approx((0.0569, 0.3404), abs=0.0001)  # as published


def test_pairs_that_all_agree_leave_an_interval_of_some_width() -> None:
    same = {seed: [1.0] for seed in range(10)}
    low, high = share_difference_interval(same, same)
    assert low == pytest.approx(wilson_interval(10, 10)[0] - 1)
    assert high == -low > 0.1


def test_runs_of_one_policy_go_by_their_folders(tmp_path: Path, runs: list[Path]) -> None:
    again = write_run(tmp_path / "again", RandomPolicy(), [WALK], episodes=4)
    assert compare_runs([runs[1], again])["runs"] == ["random", "again"]
    (tmp_path / "b").mkdir()
    other = write_run(tmp_path / "b" / "random", RandomPolicy(), [WALK], episodes=4)
    assert compare_runs([runs[1], other])["runs"] == [str(runs[1]), str(other)]


def test_episodes_of_one_run_alone_are_left_out(tmp_path: Path, runs: list[Path]) -> None:
    folder = write_run(tmp_path / "a", OraclePolicy(), [WALK], episodes=25)
    write_rows(folder, [row for row in read_rows(folder) if row["episode"] not in (0, 3)])
    pair, part = compare(folder, runs[1])
    assert (part["pairs"], part["only_first"], part["only_second"]) == (18, 5, 2)
    assert pair["only_parts"] == {"first": [], "second": [COIN]}


def test_repeats_are_paired_one_by_one_and_the_seed_is_what_varies(tmp_path: Path) -> None:
    def play(way: str, repeats: int) -> Path:
        policy = ScriptedPolicy([f"<action>{way}</action>"])
        return write_run(tmp_path / f"{way}{repeats}", policy, episodes=10, repeats=repeats)

    once, twice = ([play(way, repeats) for way in ("right", "left")] for repeats in (1, 2))
    one, two = compare(*once)[1], compare(*twice)[1]
    assert (one["pairs"], one["repeated"], two["pairs"], two["repeated"]) == (10, False, 20, True)
    # Both play every repeat alike, so there is nothing more to know.
    assert two["return"] == one["return"]
    assert two["success"] == pytest.approx(one["success"], abs=0.06)
    mixed = compare(once[0], twice[1])[1]
    assert (mixed["pairs"], mixed["only_second"]) == (10, 10)


def test_items_are_paired_by_their_arguments(tmp_path: Path) -> None:
    options = {"episodes": 3, "items": [{"max_turns": 2}, {"max_turns": 8}]}
    first = write_run(tmp_path / "a", OraclePolicy(), **options)
    part = compare(first, write_run(tmp_path / "b", ScriptedPolicy(["no"]), **options))[1]
    assert part["pairs"] == 6
    assert [row["arguments"] for row in part["won_by_first"]] == [{"max_turns": 8}] * 3


@pytest.mark.parametrize(("changes", "named"), [
    ({"arguments": {"parser": "json"}}, "parser"), ({"changed": True}, "changed"),
    ({"arguments": {"invalid_penalty": 0.5}}, "arguments.invalid_penalty"),
    ({"builder": PromptBuilder(2, 1)}, "history.turns"),
    *(({}, name) for name in (
        "spec_hash", "prompt_hash", "class", "parser_version", "parser_settings", "reply_ends",
    )),
])  # fmt: skip
def test_different_conditions_are_refused_and_named(tmp_path, runs, changes, named):
    other = write_run(tmp_path / "a", OraclePolicy(), episodes=1, **changes)
    if not changes:
        part = json.loads((other / "run.json").read_text())["parts"][WALK]
        change_header(other, parts={WALK: {**part, named: "other"}})
    line = rf"cannot be compared: vlgym/Walk-v0 differs in .*\b{named}\b"
    with pytest.raises(UserError, match=line):
        compare_runs([runs[0], other])


def test_runs_without_anything_in_common_are_refused(tmp_path: Path, runs: list[Path]) -> None:
    policy = RandomPolicy()
    val = write_run(tmp_path / "val", policy, episodes=1, split="val")
    walk, coin = (write_run(tmp_path / name, policy, [name], episodes=1) for name in (WALK, COIN))
    TrajectoryWriter(tmp_path / "other", describe_run([make_walk()]))
    for folders, line in (
        ([runs[0], val], "one played split test, the other val"), ([walk, coin], "No part of .* is in"),
        ([walk], "takes two folders or more"), ([walk, tmp_path / "other"], "no evaluation"),
    ):  # fmt: skip
        with pytest.raises((UserError, TrajectoryError), match=line):
            compare_runs(folders)


def test_a_part_that_only_one_has_begun_has_no_pairs(tmp_path: Path, runs: list[Path]) -> None:
    other = write_run(tmp_path / "a", RandomPolicy(), [WALK, COIN], episodes=1)
    write_rows(other, [row for row in read_rows(other) if row["part"] == COIN])
    pair, part = compare(runs[0], other)
    assert part == {"env_id": WALK, "pairs": 0, "only_first": 20, "only_second": 0}
    assert pair["overall"]["parts"] == 1


def test_controls_are_compared_but_count_in_no_mean(tmp_path: Path) -> None:
    oracle, other = OraclePolicy(), RandomPolicy()
    sides = ({"shown": oracle, "grey": other}, {"shown": other, "grey": oracle})
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, policies in zip(folders, sides, strict=True):
        write_run(folder, policies, episodes=8, pictures=["shown", "grey"])
    pair, seen = compare(*folders)
    difference = seen["success"]["difference"]
    assert difference == -pair["parts"][f"{WALK} grey"]["success"]["difference"] > 0
    assert (pair["overall"]["parts"], pair["overall"]["won_by_second"]) == (1, 0)
    assert pair["overall"]["success"]["difference"] == difference


def test_a_command_names_seed_and_arguments() -> None:
    arguments = {"level": "a b", "n": 3, "planner": "global", "code": "12"}
    words = write_play_command({"env_id": WALK, "seed": 7, "arguments": arguments})
    quoted = """--arg 'level="a b"' --arg n=3 --arg 'planner="global"' --arg 'code="12"'"""
    assert words == f"vlgym play {WALK} --seed 7 {quoted}"


def test_the_named_episode_is_the_one_that_was_played(runs: list[Path], tmp_path: Path) -> None:
    episode = compare(runs[2], runs[1])[1]["won_by_first"][0]
    _, *words = shlex.split(write_play_command(episode))
    output = invoke(*words, "--policy", "oracle", "--out", tmp_path / "p").out
    texts = [row["text"] for row in read_rows(runs[2]) if row["seed"] == episode["seed"]]
    assert texts[0].splitlines()[-1] in output
    assert "success yes" in output


def test_the_command_prints_differences_and_episodes(runs: list[Path], tmp_path: Path) -> None:
    more = write_run(tmp_path / "a", OraclePolicy(), [WALK], episodes=25)
    output = invoke("compare", more, runs[1]).out
    for words in (
        "oracle against random", f"{WALK}: 5 episode(s) in oracle only", f"in random only: {COIN}",
        "normalized", "won by oracle and lost by random:", f"  vlgym play {WALK} --seed ",
    ):  # fmt: skip
        assert words in output
    compared = json.loads(invoke("compare", *runs, "--json").out)
    assert compared["runs"] == ["scripted", "random", "oracle"]
    names = [(pair["first"], pair["second"]) for pair in compared["pairs"]]
    assert names == [("scripted", "random"), ("scripted", "oracle"), ("random", "oracle")]
    assert compared["pairs"][0] == compare_runs(runs[:2])["pairs"][0]


def test_a_comparison_has_both_sides_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    habit = ScriptedPolicy(["<answer>right</answer>", "<action>right</action>", "no"])
    auto = {"arguments": {"parser": "auto"}}
    sides = [write_run(tmp_path / "a", habit, episodes=9, **auto)]
    sides.append(write_run(tmp_path / "b", OraclePolicy(), episodes=6, **auto))
    replies = compare(*sides)[1]["replies"]
    rows = [row for row in read_rows(sides[0]) if row["episode"] < 6]  # the pairs alone
    first, second = replies["first"], replies["second"]
    invalid = sum(row["invalid"] for row in rows)
    forms = {form: sum(row.get("form") == form for row in rows) for form in ("answer", "tag")}
    assert (first["forms"], first["invalid"]["codes"]) == (forms, {"no_action": invalid})
    assert (second["invalid"]["codes"], [*second["forms"]]) == ({}, ["tag"])
    assert second["all_valid"]["rate"] == 1.0
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke("compare", *sides).out.splitlines()
    at = next(at for at, line in enumerate(lines) if "success where valid" in line)
    assert lines[at + 1].startswith(f"{WALK}  scripted  no_action {invalid}  answer ")
    assert lines[at + 1].endswith(f" of {first['all_valid']['episodes']}")
    assert not lines[at + 2].startswith(WALK + "  ")  # the oracle's replies were all as asked
    assert max(map(len, lines)) <= 80


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The idle policy's results and the oracle's, of which only the report is kept."""
    folder = tmp_path / "results"
    for policy in (IdlePolicy(), OraclePolicy()):
        write_report(write_run(folder / policy.name, policy, episodes=8))
    (folder / "oracle" / "metadata.jsonl").unlink()
    return folder


def test_a_table_is_best_first_and_refuses_another_task(results: Path, tmp_path: Path) -> None:
    shutil.move(results / "idle", results / "<script>")
    page = tmp_path / "page.html"
    command = ["compare", results / "<script>", results / "oracle", "--html", page]
    invoke(*command)
    lines = [line for line in page.read_text().splitlines() if "<td" in line]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in lines]
    assert [row[:3] for row in rows] == [
        [part, name, "8"] for part in ("over all", WALK) for name in ("oracle", "&lt;script&gt;")
    ]
    assert '1.00 <span class="ends">[1.00, 1.00]</span>' in rows[2]
    assert "<script" not in page.read_text()
    page.unlink()
    header = json.loads((results / "oracle" / "run.json").read_text())
    header["parts"][WALK]["prompt_hash"] = "0123"
    change_header(results / "oracle", parts=header["parts"])
    assert f"{WALK} differs in prompt_hash" in invoke(*command, status=2).err
    assert not page.exists()


@pytest.mark.parametrize("text", ["{", '{"parts": 3}', '{"parts": {"x": {}}}', "[]", None])
def test_a_malformed_or_missing_report_is_one_line(results: Path, text: str | None) -> None:
    path = results / "oracle" / "report.json"
    path.write_text(text) if text else path.unlink()
    error = invoke("compare", results / "oracle", "--html", results / "page.html", status=2).err
    fault = "report.json is malformed" if text else "holds neither metadata.jsonl nor report.json"
    assert fault in error


def test_who_played_more_parts_is_above_who_won_more() -> None:
    def report(parts: int, success: float) -> dict[str, Any]:
        counts = {"parts": parts, "episodes": 8, "planned": 8}
        mean = {"mean": success, "low": 0.0, "high": 1.0}
        return {"parts": {}, "overall": {**counts, "success": mean}}

    reports = [("few", report(1, 1.0)), ("bad", report(2, 0.1)), ("good", report(2, 0.5))]
    _, rows = list_results(reports)
    assert [row[1] for row in rows] == ["good", "bad", "few"]
