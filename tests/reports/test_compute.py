"""The numbers of a report, computed again here from the raw lines in plain Python; and refusals."""

import itertools
import json
import math
import random
import shutil
import statistics
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from evaluations import COIN, WALK, Counting, change_header, read_rows, write_rows, write_run
from toys import installed, make_walk

from vlgym.errors import TrajectoryError
from vlgym.intervals import wilson_interval
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.registry import get_registry
from vlgym.reports.compute import compute_report, leave_out_wide
from vlgym.reports.records import FIELDS
from vlgym.reports.sampling import expect_best, find_instruction_error, mean_interval, standard_error, success_interval
from vlgym.reports.text import list_rows
from vlgym.types import Reply, StepRecord, Turn

pytestmark = pytest.mark.usefixtures("walk_and_coin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 episodes each of Walk and Coin, played at random, with prices of a million tokens."""
    place = tmp_path_factory.mktemp("runs") / "random"
    return write_run(place, Counting(RandomPolicy()), [WALK, COIN], episodes=20, prices=(2.0, 10.0))


def compute_walk(folder: Path, policy: Any, **options: Any) -> dict[str, Any]:
    """Play Walk; return the numbers of its part."""
    return compute_report(write_run(folder, policy, **options))["parts"][WALK]


def episodes_of(folder: Path, part: str) -> list[list[dict[str, Any]]]:
    rows = [row for row in read_rows(folder) if row["part"] == part]
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row["episode"])]
    return sorted(groups, key=lambda rows: rows[0]["episode"])


def list_returns(folder: Path, part: str) -> list[float]:
    return [sum(row["reward"] for row in episode) for episode in episodes_of(folder, part)]


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """An interval of the mean."""
    generator, n = random.Random(1), len(values)
    again = sorted(sum(generator.choices(values, k=n)) / n for _ in range(2000))
    return again[50], again[-51]


def test_the_numbers_of_a_part_are_those_that_plain_arithmetic_gives(folder: Path) -> None:
    part = compute_report(folder)["parts"][COIN]
    episodes, returns = episodes_of(folder, COIN), list_returns(folder, COIN)
    rows = [row for episode in episodes for row in episode]
    wins, mean = sum(episode[-1]["success"] for episode in episodes), sum(returns) / 20
    spread = math.sqrt(sum((each - mean) ** 2 for each in returns) / 19 / 20)
    illegal = sum("dig" in row["reply"] for row in rows)
    prompt, reply = (sum(row["usage"][f"{name}_tokens"] for row in rows) for name in ("prompt", "completion"))
    low, high = wilson_interval(wins, 20)
    assert 0 < illegal < len(rows)
    for name, expected in {
        "episodes": 20, "planned": 20, "seeds": 20, "replies": len(rows),
        "success": {"rate": wins / 20, "low": low, "high": high, "wins": wins, "trials": 20},
        "turns": {"mean": len(rows) / 20, "most": max(map(len, episodes))},
        "prompt_tokens": {"total": prompt, "mean": prompt / len(rows)},
        "reply_tokens": {"total": reply, "mean": reply / len(rows)},
        "cost": (2 * prompt + 10 * reply) / 1e6,
        "won_within": [
            sum(any(row["success"] for row in each[:turns]) for each in episodes) / 20 for turns in range(1, 7)
        ],
    }.items():  # fmt: skip
        assert part[name] == pytest.approx(expected), name
    assert (part["return"]["mean"], part["return"]["se"]) == pytest.approx((mean, spread))
    assert part["score"]["mean"] == pytest.approx(sum(each[-1]["score"] for each in episodes) / 20)
    assert part["invalid"] == {"rate": illegal / len(rows), "codes": {"illegal_action": illegal}}
    assert not {"floor", "ceiling", "normalized", "benchmark"} & part.keys()


def test_replies_are_counted_by_kind_and_form_and_success_where_valid(tmp_path: Path) -> None:
    policy = ScriptedPolicy([r"\boxed{right}", "<action>right</action>", "<action>right</action>", "no"])
    part = compute_walk(tmp_path / "a", policy, episodes=12, arguments={"parser": "auto"})
    episodes = episodes_of(tmp_path / "a", WALK)
    rows = [row for episode in episodes for row in episode]
    valid = [episode for episode in episodes if not any(row["invalid"] for row in episode)]
    wins, silent = sum(each[-1]["success"] for each in valid), sum(row["reply"] == "no" for row in rows)
    low, high = wilson_interval(wins, len(valid))
    assert 0 < len(valid) < 12
    assert (part["asked"], part["invalid"]["codes"]) == ("tag", {"no_action": silent})
    forms = {form: sum(row.get("form") == form for row in rows) for form in ("boxed", "tag")}
    assert part["forms"] == forms
    assert min(forms.values()) > 0
    names = ("episodes", "wins", "rate", "low", "high")
    expected = (len(valid), wins, wins / len(valid), low, high)
    assert tuple(part["all_valid"][name] for name in names) == pytest.approx(expected)


def test_what_a_server_did_makes_no_episode_invalid(tmp_path: Path) -> None:
    def reply(turns: Sequence[Turn]) -> list[Reply]:
        return [Reply("", status="filtered") for _ in turns]

    part = compute_walk(tmp_path / "a", SimpleNamespace(name="filtered", reply=reply), episodes=4)
    assert (part["invalid"]["codes"], part["forms"], part["all_valid"]["episodes"]) == ({}, {}, 4)
    assert part["all_valid"]["rate"] == part["success"]["rate"] == 0.0


def test_the_normalized_score_has_a_bootstrap_interval(folder: Path) -> None:
    part = compute_report(folder)["parts"][WALK]
    scores = [(each - 0.25) / 0.75 for each in list_returns(folder, WALK)]
    normalized = part["normalized"]
    assert (part["floor"]["return"], part["ceiling"]["return"]) == (0.25, 1.0)
    assert normalized["mean"] == pytest.approx(sum(scores) / 20)
    assert len({*scores}) == 2  # steps of the interval's ends: one episode, 1 / 20 / 0.75
    assert (normalized["low"], normalized["high"]) == pytest.approx(bootstrap(scores), abs=0.07)


def test_the_sight_score_lies_between_blind_floor_and_ceiling(folder: Path) -> None:
    entry = get_registry().known[WALK]
    blind = {**entry["floor"], "return": 0.5, "policy": "searcher", "success_policy": "searcher"}
    with installed(known={WALK: {**entry, "blind": blind}}):
        report = compute_report(folder)
    part, score = report["parts"][WALK], sum(list_returns(folder, WALK)) / 20
    assert part["blind"] == blind
    assert part["sight_score"]["mean"] == pytest.approx((score - 0.5) / 0.5)
    assert report["overall"]["sight_score"]["mean"] == part["sight_score"]["mean"]
    assert "sight score" in list_rows(report)[0]
    unmeasured = compute_report(folder)
    assert not {"sight_score"} & (unmeasured["parts"][WALK].keys() | unmeasured["overall"].keys())
    assert "sight score" not in list_rows(unmeasured)[0]


def test_over_all_each_part_counts_once_and_controls_do_not(tmp_path: Path) -> None:
    policies = {"shown": Counting(RandomPolicy()), "grey": Counting(ScriptedPolicy(["eh"]))}
    options = {"episodes": 12, "pictures": ["shown", "grey"], "prices": (1, 1)}
    report = compute_report(write_run(tmp_path / "a", policies, [WALK, COIN], **options))
    parts, overall = report["parts"], report["overall"]
    walk, coin, success = parts[WALK], parts[COIN], overall["success"]
    assert list(parts) == [COIN, f"{COIN} grey", WALK, f"{WALK} grey"]
    assert (overall["parts"], overall["episodes"], overall["planned"]) == (2, 24, 24)
    rates = walk["success"]["rate"], coin["success"]["rate"]
    assert rates[0] != rates[1]
    assert success["mean"] == pytest.approx(sum(rates) / 2)
    assert success["low"] < success["mean"] < success["high"]
    assert overall["normalized"]["mean"] == pytest.approx(walk["normalized"]["mean"])
    assert overall["normalized"]["parts"] == 1
    assert overall["cost"] == pytest.approx(coin["cost"] + walk["cost"])
    assert report["spent"]["cost"] == pytest.approx(sum(part["cost"] for part in parts.values()))
    assert report["spent"]["replies"] == len(read_rows(tmp_path / "a"))


def test_a_part_of_a_wide_interval_does_not_count_over_all() -> None:
    close = {seed: [0.1 * (seed % 3)] for seed in range(12)}
    wide = {seed: [-4.0 if seed % 2 else 4.0] for seed in range(12)}
    assert leave_out_wide([close, None, wide]) == [close, None, None]
    assert leave_out_wide([wide]) == [wide]
    for most, counts in ((0.98, True), (1.02, False)):  # 12 of -x and x have an interval of x
        part = {seed: [-most if seed % 2 else most] for seed in range(12)}
        assert leave_out_wide([close, part]) == [close, part if counts else None]
    assert leave_out_wide([{0: [5.0]}, close]) == [{0: [5.0]}, close]  # one episode has no interval


def test_what_a_control_loses_is_the_difference_on_equal_seeds(tmp_path: Path) -> None:
    policies = {"shown": RandomPolicy(), "grey": ScriptedPolicy(["<action>right</action>"])}
    folder = write_run(tmp_path / "a", policies, episodes=16, pictures=["shown", "grey"])
    (row,) = compute_report(folder)["sight"]
    wins = [[each[-1]["success"] for each in episodes_of(folder, key)] for key in (WALK, f"{WALK} grey")]
    differences = [a - b for a, b in zip(*wins, strict=True)]
    mean, success = sum(differences) / 16, row["success"]
    assert {-1, 0} <= set(differences)
    names = ("part", "control", "pictures", "pairs")
    assert [row[name] for name in names] == [WALK, f"{WALK} grey", "grey", 16]
    assert success["difference"] == pytest.approx(mean)
    assert success["shown"] - success["control"] == pytest.approx(mean)
    assert (success["low"], success["high"]) == pytest.approx(bootstrap(differences), abs=1 / 16)
    rows = read_rows(folder)
    missing = {(WALK, 1), (WALK, 4), (f"{WALK} grey", 5)}
    write_rows(folder, [row for row in rows if (row["part"], row["episode"]) not in missing])
    assert compute_report(folder)["sight"][0]["pairs"] == 13


def test_repeats_are_reported_by_magebenchs_protocol(tmp_path: Path) -> None:
    """The oracle plays the first time, and nobody the second."""

    def reply(turns: Sequence[Turn]) -> list[Reply]:
        return [OraclePolicy().reply([turn])[0] if turn.repeat == 0 else Reply("") for turn in turns]

    folder, policy = tmp_path / "a", SimpleNamespace(name="alternating", reply=reply)
    part = compute_walk(folder, policy, episodes=5, repeats=2)
    benchmark = part["benchmark"]
    assert (part["episodes"], part["planned"], part["seeds"], part["repeats"]) == (10, 10, 5, 2)
    assert (benchmark["items"], benchmark["mean"], benchmark["best_of"]) == (5, 0.5, [0.5, 1.0])
    # The list's mean is 1 in the first repeat and 0 in the second: sd sqrt(1/2), t(1) = 12.706, over sqrt(2).
    assert benchmark["half_width"] == pytest.approx(12.706 / 2, abs=0.001)
    assert part["empty"] == pytest.approx(40 / part["replies"])  # 5 episodes of 8 turns
    write_rows(folder, [row for row in read_rows(folder) if row["episode"] != 9])
    part = compute_report(folder)["parts"][WALK]  # only items of which every repeat has ended count
    assert (part["episodes"], part["benchmark"]["items"], part["benchmark"]["mean"]) == (9, 4, 0.5)
    assert part["success"]["rate"] == pytest.approx(5 / 9)
    silent = compute_walk(tmp_path / "b", ScriptedPolicy([" "]), episodes=2, repeats=2)
    assert silent["benchmark"]["instruction_error"] == "100% of the replies could not be parsed"
    assert silent["empty"] == 1


def test_repeats_that_say_the_same_count_as_one_trial() -> None:
    once = {seed: [float(seed < 3)] for seed in range(10)}
    thrice = {seed: values * 3 for seed, values in once.items()}
    assert success_interval(thrice) == pytest.approx((*wilson_interval(3, 10), 10), abs=0.02)
    assert success_interval(once) == (*wilson_interval(3, 10), 10)
    assert standard_error(thrice) == pytest.approx(standard_error(once))
    assert mean_interval(thrice) == mean_interval(once)


def test_repeats_that_differ_freely_count_as_trials() -> None:
    generator = random.Random(0)
    groups = {seed: [float(generator.random() < 0.5) for _ in range(4)] for seed in range(400)}
    low, high, trials = success_interval(groups)
    assert trials == pytest.approx(1600, rel=0.1)
    assert (low, high) == pytest.approx(wilson_interval(sum(map(sum, groups.values())), 1600), abs=0.003)
    assert success_interval({0: [1.0, 1.0], 1: [1.0, 1.0]})[2] == 2


def test_the_interval_over_strata_is_that_of_the_mean_of_their_means() -> None:
    flat, wide = {seed: [0.5] for seed in range(5)}, {seed: [float(seed % 2)] for seed in range(100)}
    low, high = mean_interval(flat, wide) or (math.nan, math.nan)
    # The second stratum's mean has standard error 0.05; half of it, times 1.96, on either side of 0.5.
    assert (low, high) == pytest.approx((0.5 - 0.049, 0.5 + 0.049), abs=0.006)
    assert mean_interval(wide, {0: [1.0]}) is None
    assert mean_interval() is None


def test_the_order_in_which_episodes_ended_changes_no_number(folder: Path, tmp_path: Path) -> None:
    key = itemgetter("part", "episode")
    whole = [list(group) for _, group in groupby(read_rows(folder), key=key)]
    random.Random(0).shuffle(whole)
    other = Path(shutil.copytree(folder, tmp_path / "shuffled"))
    write_rows(other, [row for episode in whole for row in episode])
    assert compute_report(other) == compute_report(folder)


@pytest.mark.parametrize("cut", [0, 60])
def test_half_an_episode_is_left_out(folder: Path, tmp_path: Path, cut: int) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "killed"))
    rows = read_rows(folder)
    last = rows[-1]["episode"], rows[-1]["part"]
    write_rows(other, [row for row in rows if (row["episode"], row["part"]) != last])
    expected = compute_report(other)
    write_rows(other, rows[:-1])
    path = other / "metadata.jsonl"
    path.write_text(path.read_text()[: -cut or None])
    assert compute_report(other) == expected
    assert sum(part["episodes"] for part in expected["parts"].values()) == 39


def test_one_episode_has_no_spread_and_other_arguments_no_bounds(tmp_path: Path) -> None:
    part = compute_walk(tmp_path / "a", OraclePolicy(), episodes=1)
    assert part["return"] == {"mean": 1.0}
    assert part["normalized"] == {"mean": 1.0, "parts": 1}
    report = compute_report(write_run(tmp_path / "b", OraclePolicy(), episodes=1, changed=True))
    assert not {"floor", "ceiling", "normalized"} & report["parts"][WALK].keys()
    assert "normalized" not in report["overall"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "small", RandomPolicy(), episodes=2)


@pytest.fixture
def small(played: Path, tmp_path: Path) -> Path:
    """A run that a test may change."""
    return Path(shutil.copytree(played, tmp_path / "small"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": "much"}, "line 2: ValueError: reward is 'much', not float"),
        pytest.param({"reward": 10**400}, "reward is 1000000", id="huge"),
        ({"reward": math.nan}, "reward is nan, not float"),
        ({"reward": 1e308}, r"reward is 1e\+308, not float"),
        ({"score": -1e308}, r"score is -1e\+308, not float"),
        ({"reward": 1.01}, "episode 0 of vlgym/Walk-v0 pays 1.01 at its turn 1; the card's reward_range is 0 to 1"),
        ({"usage": {"prompt_tokens": 10**400}}, "prompt_tokens is 1000000"),
        ({"success": "yes"}, "success is 'yes', not bool"), ({"reply": 5}, "reply is 5, not str"),
        ({"usage": {"tokens": 1}}, "TypeError"), ({"usage": {"seconds": "x"}}, "seconds is 'x', not"),
        ({"seed": 7}, "should have seed"), ({"repeat": 3}, "should have seed"),
        ({"turn": 4}, "should have seed"), ({"episode": 1}, "should have seed"),
    ],
)  # fmt: skip
def test_a_wrong_record_is_one_line(small: Path, change: dict[str, Any], message: str) -> None:
    rows = read_rows(small)
    assert rows[0]["episode"] == 0
    write_rows(small, [rows[0], {**rows[1], **change}, *rows[2:]])
    with pytest.raises(TrajectoryError, match=message) as caught:
        compute_report(small)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("change", "message"), [
    ({"part": "vlgym/Other-v0"}, "of vlgym/Other-v0 is of no part that run.json names"),
    ({"part": ["x"]}, r"part is \['x'\], not str"),
    ({"episode": 12}, "episode 12 of vlgym/Walk-v0 is not one of the 2 planned"),
    ({"episode": -1}, "is not one of the 2 planned"),
    ({"episode": "0"}, "episode is '0', not int"),
])  # fmt: skip
def test_a_foreign_episode_is_refused(small: Path, change: dict[str, Any], message: str) -> None:
    whole = read_rows(small)
    write_rows(small, [*whole, *(row for row in whole if row["episode"] == 1)])
    with pytest.raises(TrajectoryError, match=r"episode 1 of vlgym/Walk-v0 is recorded twice"):
        compute_report(small)
    write_rows(small, [{**row, **change} if row["episode"] == 0 else row for row in whole])
    with pytest.raises(TrajectoryError, match=message):
        compute_report(small)


def test_other_arguments_may_pay_outside_the_cards_range(tmp_path: Path) -> None:
    paying = {"arguments": {"invalid_penalty": 2.0}, "changed": True}
    part = compute_walk(tmp_path / "a", ScriptedPolicy(["no"]), episodes=1, **paying)
    assert part["return"]["mean"] == -16.0
    plan = write_run(tmp_path / "b", RandomPolicy(), [COIN], episodes=1, arguments={"parser": "plan"})
    rows = read_rows(plan)
    write_rows(plan, [{**rows[0], "actions": ["heads"] * 2, "reward": 4.0}, *rows[1:]])
    assert compute_report(plan)["parts"][COIN]["episodes"] == 1


def test_a_folder_that_is_no_evaluation_is_one_clear_line(tmp_path: Path, small: Path) -> None:
    (tmp_path / "empty").mkdir()
    TrajectoryWriter(tmp_path / "other", describe_run([make_walk()]))
    (small / "metadata.jsonl").unlink()
    for name, line in (
        ("nowhere", "nowhere is not a folder; name the folder that `vlgym eval --out` wrote"),
        ("empty", r"holds no run\.json; name the folder"), ("other", "holds no evaluation"),
        ("small", r"small holds no metadata\.jsonl"),
    ):  # fmt: skip
        with pytest.raises(TrajectoryError, match=line):
            compute_report(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 9}, "has format 9; this version reads 3 and 4"),
        ({"policy": None}, "'policy' is missing"), ({"policy": {"name": 3}}, "policy.name is 3"),
        ({"split": "dev"}, "split is 'dev'"), ({"parts": {}}, "parts is {}"), ({"parts": {WALK: 3}}, "is 3"),
        ({"prices": {"in": 1}}, "'out' is missing"), ({"prices": {"in": 1, "out": "x"}}, "prices is"),
        *[({"prices": {"in": price, "out": 1.0}}, "prices is") for price in (math.nan, math.inf, 1e308, -1.0)],
        ({"items": []}, "items is"), ({"items": [3]}, "items is"), ({"episodes": 0}, "episodes is 0"),
        ({"repeats": True}, "repeats is True"), ({"pictures": "blue"}, "pictures is 'blue'"),
        ({"planner": "x"}, "planner is 'x'"), ({"pictures": "grey"}, "the name of a part is"),
    ],
)  # fmt: skip
def test_a_wrong_header_is_one_line(small: Path, changes: dict[str, Any], message: str) -> None:
    part = json.loads((small / "run.json").read_text())["parts"][WALK]
    of_part = {*changes} <= {*FIELDS}
    change_header(small, **({"parts": {WALK: {**part, **changes}}} if of_part else changes))
    with pytest.raises(TrajectoryError, match=message) as caught:
        compute_report(small)
    assert "\n" not in str(caught.value)


def record(actions: tuple[str, ...], invalid: bool = False) -> StepRecord:
    image = np.zeros((1, 1, 3), np.uint8)
    head = ("t/T-v0", 0, 0, 0, [], image, "", "")
    return StepRecord(*head, actions, "ok", 0.0, False, False, invalid, False)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_best_of_n_is_the_mean_of_the_maxima_of_all_draws(n: int) -> None:
    scores = [3.0, 10.0, -2.0, 7.0]
    expected = statistics.mean(max(draw) for draw in itertools.combinations(scores, n))
    assert expect_best(scores, n) == pytest.approx(expected)


def test_nine_in_ten_unparsable_replies_or_equal_actions_are_an_error() -> None:
    up, down, none = record(("up",)), record(("down",)), record((), invalid=True)
    assert find_instruction_error([[none] * 9 + [up]]) is None
    assert "could not be parsed" in (find_instruction_error([[none] * 11 + [up]]) or "")
    assert "'up'" in (find_instruction_error([[up] * 9 + [down]]) or "")
    assert find_instruction_error([[up] * 8 + [down] * 2]) is None
