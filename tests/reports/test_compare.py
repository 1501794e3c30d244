"""Pairs of runs: differences and tests against hand-made numbers, refusals, and `vlgym compare`."""

from __future__ import annotations

import json
import math
import random
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import invoke
from evaluations import COIN, WALK, change_header, read_rows, write_rows, write_run
from toys import make_walk

from vlgym.env.prompts import PromptBuilder
from vlgym.errors import TrajectoryError, UserError
from vlgym.intervals import wilson_interval
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.reports.compare import agree, compare_runs, find_mcnemar_p, write_play_command
from vlgym.reports.sampling import share_difference_interval

pytestmark = pytest.mark.usefixtures("walk_and_coin")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Walk and Coin, 20 episodes each: always to the right, at random, and by the oracle."""
    place = tmp_path_factory.mktemp("runs")
    policies = (ScriptedPolicy(["<action>right</action>"]), RandomPolicy(), OraclePolicy(fallback=True))
    return [write_run(place / policy.name, policy, [WALK, COIN], episodes=20) for policy in policies]


def outcomes(folder: Path, part: str) -> dict[int, tuple[bool, float]]:
    """Seed -> success and return."""
    found: dict[int, tuple[bool, float]] = {}
    for row in read_rows(folder):
        if row["part"] == part:
            found[row["seed"]] = (row["success"], found.get(row["seed"], (False, 0.0))[1] + row["reward"])
    return found


def exact_p(first: int, second: int) -> float:
    """Twice the smaller tail of a fair coin's binomial distribution."""
    n, most = first + second, min(first, second)
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(most + 1)) / 2**n)


def test_differences_lists_and_the_test_are_those_worked_out_by_hand(runs: list[Path]) -> None:
    (pair,) = compare_runs(runs[:2])["pairs"]
    assert (pair["first"], pair["second"]) == ("scripted", "random")
    part = pair["parts"][WALK]
    a, b = (outcomes(folder, WALK) for folder in runs[:2])
    assert a.keys() == b.keys()
    first = {seed for seed in a if a[seed][0] and not b[seed][0]}
    second = {seed for seed in a if b[seed][0] and not a[seed][0]}
    assert min(len(first), len(second)) > 0
    assert {row["seed"] for row in part["won_by_first"]} == first
    assert {row["seed"] for row in part["won_by_second"]} == second
    assert part["mcnemar_p"] == pytest.approx(exact_p(len(first), len(second)))
    assert (part["pairs"], part["only_first"], part["only_second"]) == (20, 0, 0)
    assert part["success"]["difference"] == pytest.approx((len(first) - len(second)) / 20)
    assert part["success"]["first"] == pytest.approx(sum(won for won, _ in a.values()) / 20)
    assert part["success"]["low"] < part["success"]["difference"] < part["success"]["high"]
    differences = [a[seed][1] - b[seed][1] for seed in a]
    assert part["return"]["difference"] == pytest.approx(sum(differences) / 20)
    generator = random.Random(3)
    again = sorted(sum(generator.choices(differences, k=20)) / 20 for _ in range(4000))
    assert (part["return"]["low"], part["return"]["high"]) == pytest.approx((again[100], again[-101]), abs=0.06)


def test_an_interval_does_not_exclude_0_where_the_exact_test_does_not_reject() -> None:
    few = {"difference": 1.0, "low": 0.07, "high": 1.0}
    assert agree(few, find_mcnemar_p(2, 0)) == {"difference": 1.0, "low": 0.0, "high": 1.0}
    assert agree(few, find_mcnemar_p(6, 0)) == few


def test_over_all_each_part_counts_once_and_pairs_are_pooled(runs: list[Path]) -> None:
    (pair,) = compare_runs([runs[2], runs[1]])["pairs"]
    parts, overall = pair["parts"], pair["overall"]
    assert overall["parts"] == 2
    differences = [parts[key]["success"]["difference"] for key in (COIN, WALK)]
    assert overall["success"]["difference"] == pytest.approx(sum(differences) / 2)
    won = [sum(len(part[side]) for part in parts.values()) for side in ("won_by_first", "won_by_second")]
    assert [overall["won_by_first"], overall["won_by_second"]] == won
    assert overall["mcnemar_p"] == pytest.approx(exact_p(*won))
    below = math.hypot(*(parts[key]["success"]["difference"] - parts[key]["success"]["low"] for key in parts)) / 2
    assert overall["success"]["low"] == pytest.approx(sum(differences) / 2 - below)
    # Coin has neither floor nor ceiling; Walk's are 0.25 and 1.
    assert overall["normalized"]["parts"] == 1
    assert overall["normalized"]["difference"] == pytest.approx(parts[WALK]["return"]["difference"] / 0.75)


def test_mcnemars_exact_test_is_the_binomial_one() -> None:
    for pair in ((0, 0), (1, 0), (5, 0), (9, 2), (3, 3), (2, 13), (1500, 1400)):
        assert find_mcnemar_p(*pair) == pytest.approx(exact_p(*pair))


def test_the_interval_of_paired_shares_is_newcombes() -> None:
    # Newcombe (1998), method 10: of 50 pairs 36 both, 12 the first alone, 2 the second alone.
    pairs = [(1.0, 1.0)] * 36 + [(1.0, 0.0)] * 12 + [(0.0, 1.0)] * 2
    first, second = ({seed: [pair[side]] for seed, pair in enumerate(pairs)} for side in (0, 1))
    (a, b), (c, d), phi = wilson_interval(48, 50), wilson_interval(38, 50), -24 / math.sqrt(48 * 2 * 38 * 12)
    low = 0.2 - math.sqrt((0.96 - a) ** 2 - 2 * phi * (0.96 - a) * (d - 0.76) + (d - 0.76) ** 2)
    high = 0.2 + math.sqrt((b - 0.96) ** 2 - 2 * phi * (b - 0.96) * (0.76 - c) + (0.76 - c) ** 2)
    assert share_difference_interval(first, second) == pytest.approx((low, high))
    assert (low, high) == pytest.approx((0.0569, 0.3404), abs=0.0001)  # as published


def test_a_positive_correlation_is_corrected_for_continuity() -> None:
    pairs = [(1.0, 1.0)] * 20 + [(1.0, 0.0)] * 8 + [(0.0, 1.0)] * 2 + [(0.0, 0.0)] * 10
    first, second = ({seed: [pair[side]] for seed, pair in enumerate(pairs)} for side in (0, 1))
    phi = (20 * 10 - 8 * 2 - 40 / 2) / math.sqrt(28 * 12 * 22 * 18)
    (a, _), (_, d) = wilson_interval(28, 40), wilson_interval(22, 40)
    low = 0.15 - math.sqrt((0.7 - a) ** 2 - 2 * phi * (0.7 - a) * (d - 0.55) + (d - 0.55) ** 2)
    assert share_difference_interval(first, second)[0] == pytest.approx(low)


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
    (pair,) = compare_runs([folder, runs[1]])["pairs"]
    part = pair["parts"][WALK]
    assert (part["pairs"], part["only_first"], part["only_second"]) == (18, 5, 2)
    assert pair["only_parts"] == {"first": [], "second": [COIN]}


def test_repeats_are_paired_one_by_one_and_the_seed_is_what_varies(tmp_path: Path) -> None:
    def play(way: str, repeats: int) -> Path:
        policy = ScriptedPolicy([f"<action>{way}</action>"])
        return write_run(tmp_path / f"{way}{repeats}", policy, episodes=10, repeats=repeats)

    once, twice = ([play(way, repeats) for way in ("right", "left")] for repeats in (1, 2))
    (one,), (two,) = (compare_runs(folders)["pairs"] for folders in (once, twice))
    assert (one["parts"][WALK]["pairs"], two["parts"][WALK]["pairs"]) == (10, 20)
    assert one["parts"][WALK]["repeated"] is False
    assert two["parts"][WALK]["repeated"] is True
    # Both play every repeat alike, so there is nothing more to know.
    assert two["parts"][WALK]["return"] == one["parts"][WALK]["return"]
    assert two["parts"][WALK]["success"] == pytest.approx(one["parts"][WALK]["success"], abs=0.06)
    (mixed,) = compare_runs([once[0], twice[1]])["pairs"]
    assert (mixed["parts"][WALK]["pairs"], mixed["parts"][WALK]["only_second"]) == (10, 10)


def test_items_are_paired_by_their_arguments(tmp_path: Path) -> None:
    items = [{"max_turns": 2}, {"max_turns": 8}]
    first = write_run(tmp_path / "a", OraclePolicy(), episodes=3, items=items)
    second = write_run(tmp_path / "b", ScriptedPolicy(["no"]), episodes=3, items=items)
    (pair,) = compare_runs([first, second])["pairs"]
    part = pair["parts"][WALK]
    assert part["pairs"] == 6
    assert {row["arguments"]["max_turns"] for row in part["won_by_first"]} == {8}
    assert len(part["won_by_first"]) == 3


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"arguments": {"parser": "json"}}, "parser"), ({"changed": True}, "changed"),
        ({"arguments": {"invalid_penalty": 0.5}}, "arguments.invalid_penalty"),
        ({"builder": PromptBuilder(2, 1)}, "history.turns"),
    ],
)  # fmt: skip
def test_different_conditions_are_refused_and_named(
    tmp_path: Path, runs: list[Path], changes: dict[str, Any], named: str
) -> None:
    other = write_run(tmp_path / "a", OraclePolicy(), episodes=2, **changes)
    with pytest.raises(UserError, match=rf"cannot be compared: vlgym/Walk-v0 differs in .*\b{named}\b"):
        compare_runs([runs[0], other])


def test_another_hash_is_refused(tmp_path: Path, runs: list[Path]) -> None:
    other = write_run(tmp_path / "a", OraclePolicy(), episodes=2)
    part = json.loads((other / "run.json").read_text())["parts"][WALK]
    for name in ("spec_hash", "prompt_hash", "parser_version", "parser_settings", "class", "reply_ends"):
        change_header(other, parts={WALK: {**part, name: "other"}})
        with pytest.raises(UserError, match=f"{WALK} differs in {name}"):
            compare_runs([runs[0], other])


def test_runs_without_anything_in_common_are_refused(tmp_path: Path, runs: list[Path]) -> None:
    with pytest.raises(UserError, match=r"one played split test, the other val"):
        compare_runs([runs[0], write_run(tmp_path / "val", OraclePolicy(), episodes=2, split="val")])
    walk, coin = (write_run(tmp_path / name, RandomPolicy(), [name], episodes=1) for name in (WALK, COIN))
    with pytest.raises(UserError, match=r"No part of .* is in"):
        compare_runs([walk, coin])
    with pytest.raises(UserError, match="takes two folders or more"):
        compare_runs([walk])
    TrajectoryWriter(tmp_path / "other", describe_run([make_walk()]))
    with pytest.raises(TrajectoryError, match="no evaluation"):
        compare_runs([walk, tmp_path / "other"])


def test_a_part_that_only_one_has_begun_has_no_pairs(tmp_path: Path, runs: list[Path]) -> None:
    other = write_run(tmp_path / "a", RandomPolicy(), [WALK, COIN], episodes=2)
    write_rows(other, [row for row in read_rows(other) if row["part"] == COIN])
    (pair,) = compare_runs([runs[0], other])["pairs"]
    assert pair["parts"][WALK] == {"env_id": WALK, "pairs": 0, "only_first": 20, "only_second": 0}
    assert pair["overall"]["parts"] == 1


def test_controls_are_compared_but_count_in_no_mean(tmp_path: Path) -> None:
    sides = ((OraclePolicy(), RandomPolicy()), (RandomPolicy(), OraclePolicy()))
    policies = [dict(zip(("shown", "grey"), side, strict=True)) for side in sides]
    places = (tmp_path / "a", tmp_path / "b")
    for place, policy in zip(places, policies, strict=True):
        write_run(place, policy, episodes=8, pictures=["shown", "grey"])
    (pair,) = compare_runs(places)["pairs"]
    seen, unseen = (pair["parts"][key] for key in (WALK, f"{WALK} grey"))
    assert seen["success"]["difference"] == -unseen["success"]["difference"] > 0
    assert (pair["overall"]["parts"], pair["overall"]["won_by_second"]) == (1, 0)
    assert pair["overall"]["success"]["difference"] == seen["success"]["difference"]


def test_a_command_plays_the_same_episode_by_hand() -> None:
    episode = {"env_id": WALK, "seed": 7, "arguments": {"level": "a b", "n": 3, "planner": "global", "code": "12"}}
    words = shlex.split(write_play_command(episode))
    assert words[:5] == ["vlgym", "play", WALK, "--seed", "7"]
    assert words[5:] == ["--arg", 'level="a b"', "--arg", "n=3", "--arg", 'planner="global"', "--arg", 'code="12"']


def test_the_named_episode_is_the_one_that_was_played(runs: list[Path], tmp_path: Path) -> None:
    (pair,) = compare_runs([runs[2], runs[1]])["pairs"]
    episode = pair["parts"][WALK]["won_by_first"][0]
    command = [*shlex.split(write_play_command(episode))[1:], "--policy", "oracle", "--out", str(tmp_path / "p")]
    output = invoke(*command).out
    rows = [row for row in read_rows(runs[2]) if row["seed"] == episode["seed"]]
    assert rows[0]["text"].splitlines()[-1] in output
    assert "success yes" in output


def test_the_command_prints_differences_and_episodes(runs: list[Path], tmp_path: Path) -> None:
    more = write_run(tmp_path / "a", OraclePolicy(), [WALK], episodes=25, repeats=2)
    output = invoke("compare", more, runs[1]).out
    for words in (
        "oracle against random", f"{WALK}: 30 episode(s) in oracle only", f"in random only: {COIN}", "normalized",
        "won by oracle and lost by random:", f"  vlgym play {WALK} --seed ",
    ):  # fmt: skip
        assert words in output
    found = json.loads(invoke("compare", *runs, "--json").out)
    assert found == compare_runs(runs)
    assert found["runs"] == ["scripted", "random", "oracle"]
    names = [(pair["first"], pair["second"]) for pair in found["pairs"]]
    assert names == [("scripted", "random"), ("scripted", "oracle"), ("random", "oracle")]
    assert found["pairs"][0] == compare_runs(runs[:2])["pairs"][0]


def test_a_comparison_has_both_sides_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    habit = ScriptedPolicy(["<answer>right</answer>", "<action>right</action>", "no"])
    auto = {"parser": "auto"}
    sides = [write_run(tmp_path / "a", habit, [WALK], episodes=9, arguments=auto)]
    sides.append(write_run(tmp_path / "b", OraclePolicy(), [WALK], episodes=6, arguments=auto))
    (pair,) = compare_runs(sides)["pairs"]
    rows = [row for row in read_rows(sides[0]) if row["episode"] < 6]  # the pairs alone
    found, other = pair["parts"][WALK]["replies"]["first"], pair["parts"][WALK]["replies"]["second"]
    assert found["forms"] == {form: sum(row.get("form") == form for row in rows) for form in ("answer", "tag")}
    assert found["invalid"]["codes"] == {"no_action": sum(row["invalid"] for row in rows)}
    assert (other["invalid"]["codes"], [*other["forms"]], other["all_valid"]["rate"]) == ({}, ["tag"], 1.0)
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke("compare", *sides).out.splitlines()
    at = next(at for at, line in enumerate(lines) if "success where valid" in line)
    assert lines[at].split()[:4] == ["part", "run", "invalid", "forms"]
    assert lines[at + 1].startswith(f"{WALK}  scripted  no_action {found['invalid']['codes']['no_action']}  answer ")
    assert lines[at + 1].endswith(f" of {found['all_valid']['episodes']}")
    assert not lines[at + 2].startswith(WALK + "  ")  # the oracle's replies were all as asked
    assert max(map(len, lines)) <= 80
