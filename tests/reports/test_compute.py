"""The numbers of a report, computed again here from the raw lines in plain Python; and refusals."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from evaluations import COIN, WALK, Counting, change_header, read_rows, write_rows, write_run
from toys import installed, make_walk

from vlgym.errors import TrajectoryError
from vlgym.intervals import wilson_interval
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.trajectory import TrajectoryWriter, describe_run
from vlgym.registry import get_registry
from vlgym.registry.making import unwrap
from vlgym.reports.compute import compute_report, leave_out_wide
from vlgym.reports.records import FIELDS
from vlgym.reports.sampling import mean_interval, standard_error, success_interval
from vlgym.reports.text import list_rows
from vlgym.types import Reply, Turn

pytestmark = pytest.mark.usefixtures("walk_and_coin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 episodes each of Walk and Coin, played at random, with prices of a million tokens."""
    place = tmp_path_factory.mktemp("runs") / "random"
    return write_run(place, Counting(RandomPolicy()), [WALK, COIN], episodes=20, prices=(2.0, 10.0))


def episodes_of(folder: Path, part: str) -> list[list[dict[str, Any]]]:
    rows = [row for row in read_rows(folder) if row["part"] == part]
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row["episode"])]
    return sorted(groups, key=lambda rows: rows[0]["episode"])


def test_the_numbers_of_a_part_are_those_that_plain_arithmetic_gives(folder: Path) -> None:
    part = compute_report(folder)["parts"][COIN]
    episodes = episodes_of(folder, COIN)
    rows = [row for episode in episodes for row in episode]
    wins = sum(episode[-1]["success"] for episode in episodes)
    returns = [sum(row["reward"] for row in episode) for episode in episodes]
    mean = sum(returns) / 20
    assert (part["episodes"], part["planned"], part["seeds"], part["replies"]) == (20, 20, 20, len(rows))
    assert part["success"]["wins"] == wins
    assert part["success"]["rate"] == pytest.approx(wins / 20)
    assert (part["success"]["low"], part["success"]["high"]) == pytest.approx(wilson_interval(wins, 20))
    assert part["return"]["mean"] == pytest.approx(mean)
    assert part["return"]["se"] == pytest.approx(math.sqrt(sum((r - mean) ** 2 for r in returns) / 19 / 20))
    assert part["score"]["mean"] == pytest.approx(sum(episode[-1]["score"] for episode in episodes) / 20)
    assert part["turns"] == {"mean": pytest.approx(len(rows) / 20), "most": max(map(len, episodes))}
    illegal = sum("dig" in row["reply"] for row in rows)
    assert 0 < illegal < len(rows)
    assert part["invalid"] == {"rate": pytest.approx(illegal / len(rows)), "codes": {"illegal_action": illegal}}
    prompt, reply = (sum(row["usage"][name] for row in rows) for name in ("prompt_tokens", "completion_tokens"))
    assert part["prompt_tokens"] == {"total": prompt, "mean": pytest.approx(prompt / len(rows))}
    assert part["reply_tokens"] == {"total": reply, "mean": pytest.approx(reply / len(rows))}
    assert part["cost"] == pytest.approx((2 * prompt + 10 * reply) / 1e6)
    assert not {"floor", "ceiling", "normalized", "benchmark"} & part.keys()
    for turns, share in enumerate(part["won_within"], 1):
        assert share == pytest.approx(sum(any(row["success"] for row in each[:turns]) for each in episodes) / 20)


class Habits:
    """The oracle's action, in a box on odd seeds; every third episode begins without one."""

    name = "habits"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        replies = []
        for turn in turns:
            action = unwrap(turn.env).oracle()
            silent = turn.seed is not None and turn.seed % 3 == 0 and turn.turn == 0
            form = r"\boxed{%s}" if turn.seed is not None and turn.seed % 2 else "<action>%s</action>"
            replies.append(Reply("I do not know." if silent else form % action))
        return replies


def test_replies_are_counted_by_kind_and_form_and_success_where_valid(tmp_path: Path) -> None:
    made = write_run(tmp_path / "a", Habits(), [WALK], episodes=12, arguments={"parser": "auto"})
    part = compute_report(made)["parts"][WALK]
    episodes = episodes_of(made, WALK)
    rows = [row for episode in episodes for row in episode]
    valid = [episode for episode in episodes if not any(row["invalid"] for row in episode)]
    wins = sum(episode[-1]["success"] for episode in valid)
    silent = sum(row["seed"] % 3 == 0 for row in rows if row["turn"] == 0)
    assert 0 < silent < 12
    assert part["invalid"]["codes"] == {"no_action": silent}
    assert part["forms"] == {form: sum(row.get("form") == form for row in rows) for form in ("boxed", "tag")}
    assert min(part["forms"].values()) > 0
    assert (part["asked"], part["all_valid"]["episodes"]) == ("tag", 12 - silent)
    assert (part["all_valid"]["wins"], part["all_valid"]["rate"]) == (wins, wins / len(valid))
    assert (part["all_valid"]["low"], part["all_valid"]["high"]) == pytest.approx(wilson_interval(wins, len(valid)))


def test_what_a_server_did_makes_no_episode_invalid(tmp_path: Path) -> None:
    class Filtered:
        name = "filtered"

        def reply(self, turns: Sequence[Turn]) -> list[Reply]:
            return [Reply("", status="filtered") for _ in turns]

    part = compute_report(write_run(tmp_path / "a", Filtered(), [WALK], episodes=4))["parts"][WALK]
    assert (part["invalid"]["codes"], part["forms"], part["all_valid"]["episodes"]) == ({}, {}, 4)
    assert part["all_valid"]["rate"] == part["success"]["rate"] == 0.0


def test_the_normalized_score_has_a_bootstrap_interval(folder: Path) -> None:
    part = compute_report(folder)["parts"][WALK]
    returns = [sum(row["reward"] for row in episode) for episode in episodes_of(folder, WALK)]
    assert (part["floor"]["return"], part["ceiling"]["return"]) == (0.25, 1.0)
    mean = sum(returns) / 20
    assert part["normalized"]["mean"] == pytest.approx((mean - 0.25) / 0.75)
    generator = random.Random(1)
    again = sorted((sum(generator.choices(returns, k=20)) / 20 - 0.25) / 0.75 for _ in range(4000))
    assert 0 < sum(returns) < 20  # steps of the interval's ends: one episode, 1 / 20 / 0.75
    assert part["normalized"]["low"] == pytest.approx(again[100], abs=0.07)
    assert part["normalized"]["high"] == pytest.approx(again[-101], abs=0.07)


def test_the_sight_score_lies_between_blind_floor_and_ceiling(folder: Path) -> None:
    known = get_registry().known
    blind = {**known[WALK]["floor"], "return": 0.5, "policy": "searcher", "success_policy": "searcher"}
    returns = [sum(row["reward"] for row in episode) for episode in episodes_of(folder, WALK)]
    with installed(known={WALK: {**known[WALK], "blind": blind}}):
        report = compute_report(folder)
    part = report["parts"][WALK]
    assert part["blind"] == blind
    assert part["sight_score"]["mean"] == pytest.approx((sum(returns) / 20 - 0.5) / 0.5)
    assert part["sight_score"]["mean"] != part["normalized"]["mean"]
    assert report["overall"]["sight_score"]["mean"] == part["sight_score"]["mean"]
    assert "sight score" in list_rows(report)[0]
    unmeasured = compute_report(folder)
    assert "sight_score" not in unmeasured["parts"][WALK]
    assert "sight_score" not in unmeasured["overall"]
    assert "sight score" not in list_rows(unmeasured)[0]


def test_arguments_of_another_environment_have_no_bounds(tmp_path: Path) -> None:
    report = compute_report(write_run(tmp_path / "a", OraclePolicy(), episodes=3, changed=True))
    assert not {"floor", "ceiling", "normalized"} & report["parts"][WALK].keys()
    assert "normalized" not in report["overall"]


def test_over_all_each_part_counts_once_and_controls_do_not(tmp_path: Path) -> None:
    policies = {"shown": Counting(RandomPolicy()), "grey": Counting(ScriptedPolicy(["eh"]))}
    folder = write_run(tmp_path / "a", policies, [WALK, COIN], episodes=12, pictures=["shown", "grey"], prices=(1, 1))
    report = compute_report(folder)
    parts = report["parts"]
    overall = report["overall"]
    assert list(parts) == [COIN, f"{COIN} grey", WALK, f"{WALK} grey"]
    assert (overall["parts"], overall["episodes"], overall["planned"]) == (2, 24, 24)
    rates = [parts[key]["success"]["rate"] for key in (COIN, WALK)]
    assert rates[0] != rates[1]
    assert overall["success"]["mean"] == pytest.approx(sum(rates) / 2)
    assert overall["success"]["low"] < overall["success"]["mean"] < overall["success"]["high"]
    assert overall["normalized"]["mean"] == pytest.approx(parts[WALK]["normalized"]["mean"])
    assert overall["normalized"]["parts"] == 1
    assert overall["cost"] == pytest.approx(parts[COIN]["cost"] + parts[WALK]["cost"])
    assert report["spent"]["cost"] == pytest.approx(sum(part["cost"] for part in parts.values()))
    assert report["spent"]["replies"] == len(read_rows(folder))


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
    wins = [[episode[-1]["success"] for episode in episodes_of(folder, key)] for key in (WALK, f"{WALK} grey")]
    differences = [a - b for a, b in zip(*wins, strict=True)]
    assert {-1, 0} <= set(differences)
    assert (row["part"], row["control"], row["pictures"], row["pairs"]) == (WALK, f"{WALK} grey", "grey", 16)
    assert row["success"]["difference"] == pytest.approx(sum(differences) / 16)
    assert row["success"]["shown"] - row["success"]["control"] == pytest.approx(sum(differences) / 16)
    generator = random.Random(2)
    again = sorted(sum(generator.choices(differences, k=16)) / 16 for _ in range(4000))
    assert (row["success"]["low"], row["success"]["high"]) == pytest.approx((again[100], again[-101]), abs=1 / 16)


def test_only_seeds_that_both_ended_are_compared_with_a_control(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", RandomPolicy(), episodes=6, pictures=["shown", "grey"])
    rows = read_rows(folder)
    left_out = {(WALK, 1), (WALK, 4), (f"{WALK} grey", 5)}
    write_rows(folder, [row for row in rows if (row["part"], row["episode"]) not in left_out])
    (row,) = compute_report(folder)["sight"]
    assert row["pairs"] == 3
    assert row["success"]["difference"] == 0


class Alternating:
    """Answers the first playing of a seed like the oracle, and the second with nothing."""

    name = "alternating"

    def reply(self, turns: Any) -> list[Reply]:
        return [OraclePolicy().reply([turn])[0] if turn.repeat == 0 else Reply("") for turn in turns]


def test_repeats_are_reported_by_magebenchs_protocol(tmp_path: Path) -> None:
    part = compute_report(write_run(tmp_path / "a", Alternating(), episodes=5, repeats=2))["parts"][WALK]
    assert (part["episodes"], part["planned"], part["seeds"], part["repeats"]) == (10, 10, 5, 2)
    benchmark = part["benchmark"]
    assert (benchmark["items"], benchmark["mean"], benchmark["best_of"]) == (5, 0.5, [0.5, 1.0])
    # The list's mean is 1 in the first repeat and 0 in the second: sd sqrt(1/2), t(1) = 12.706, over sqrt(2).
    assert benchmark["half_width"] == pytest.approx(12.706 / 2, abs=0.001)
    assert part["empty"] == pytest.approx(40 / part["replies"])  # 5 episodes of 8 turns
    silent = compute_report(write_run(tmp_path / "b", ScriptedPolicy([" "]), episodes=2, repeats=2))["parts"][WALK]
    assert silent["benchmark"]["instruction_error"] == "100% of the replies could not be parsed"
    assert silent["empty"] == 1


def test_the_protocol_counts_items_of_which_every_repeat_has_ended(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", Alternating(), episodes=5, repeats=2)
    write_rows(folder, [row for row in read_rows(folder) if row["episode"] != 9])
    part = compute_report(folder)["parts"][WALK]
    assert (part["episodes"], part["benchmark"]["items"], part["benchmark"]["mean"]) == (9, 4, 0.5)
    assert part["success"]["rate"] == pytest.approx(5 / 9)


def test_items_are_played_and_reported_one_after_the_other(tmp_path: Path) -> None:
    items = [{"max_turns": 2}, {"max_turns": 8}]
    part = compute_report(write_run(tmp_path / "a", OraclePolicy(), episodes=3, items=items))["parts"][WALK]
    assert (part["planned"], part["seeds"], part["success"]["wins"]) == (6, 6, 3)
    assert (part["benchmark"]["items"], part["benchmark"]["repeats"]) == (6, 1)
    assert "half_width" not in part["benchmark"]
    assert "items" not in part  # three episodes say little


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
    whole = [list(group) for _, group in groupby(read_rows(folder), key=lambda row: (row["part"], row["episode"]))]
    random.Random(0).shuffle(whole)
    other = tmp_path / "shuffled"
    shutil.copytree(folder, other)
    write_rows(other, [row for episode in whole for row in episode])
    assert compute_report(other) == compute_report(folder)


def test_no_number_depends_on_the_clock(tmp_path: Path) -> None:
    quick, slow = (
        compute_report(write_run(tmp_path / f"{times}", Counting(RandomPolicy(), slow=times), episodes=4))
        for times in (1.0, 3.0)
    )
    assert read_rows(tmp_path / "1.0")[0]["usage"] != read_rows(tmp_path / "3.0")[0]["usage"]
    assert quick == slow


@pytest.mark.parametrize("kept", [0.4, 1.0])
def test_half_an_episode_is_left_out(folder: Path, tmp_path: Path, kept: float) -> None:
    rows = read_rows(folder)
    last = rows[-1]["episode"], rows[-1]["part"]
    whole = [row for row in rows if (row["episode"], row["part"]) != last]
    begun = [row for row in rows if (row["episode"], row["part"]) == last][:-1]
    other = tmp_path / "killed"
    shutil.copytree(folder, other)
    write_rows(other, whole)
    expected = compute_report(other)
    write_rows(other, [*whole, *begun])
    path = other / "metadata.jsonl"
    text = path.read_text()
    path.write_text(text[: len(text) - len(json.dumps(begun[-1])) + int(kept * len(json.dumps(begun[-1])))])
    assert compute_report(other) == expected
    assert sum(part["episodes"] for part in expected["parts"].values()) == 39


def test_a_part_without_an_ended_episode_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", RandomPolicy(), [WALK, COIN], episodes=4)
    write_rows(folder, [row for row in read_rows(folder) if row["part"] == COIN])
    report = compute_report(folder)
    assert (report["parts"][WALK]["episodes"], report["parts"][WALK]["planned"]) == (0, 4)
    assert "success" not in report["parts"][WALK]
    assert (report["overall"]["parts"], report["overall"]["planned"]) == (1, 8)


def test_one_episode_has_no_spread(tmp_path: Path) -> None:
    part = compute_report(write_run(tmp_path / "a", OraclePolicy(), episodes=1))["parts"][WALK]
    assert part["return"] == {"mean": 1.0}
    assert part["normalized"] == {"mean": 1.0, "parts": 1}


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
        ({"reward": math.nan}, "reward is nan, not float"), ({"reward": 1e308}, r"reward is 1e\+308, not float"),
        ({"score": -1e308}, r"score is -1e\+308, not float"), ({"reward": 1.01}, "pays 1.01 at its turn 1"),
        ({"usage": {"prompt_tokens": 10**400}}, "prompt_tokens is 1000000"),
        ({"reward": -100.0}, "episode 0 of vlgym/Walk-v0 pays -100 at its turn 1; the card's reward_range is 0 to 1"),
        ({"success": "yes"}, "success is 'yes', not bool"), ({"reply": 5}, "reply is 5, not str"),
        ({"seed": 7}, "should have seed"), ({"repeat": 3}, "should have seed"), ({"turn": 4}, "should have seed"),
        ({"episode": 1}, "should have seed"), ({"usage": {"tokens": 1}}, "line 2: TypeError"),
        ({"usage": {"seconds": "long"}}, "seconds is 'long', not float"),
    ],
)  # fmt: skip
def test_a_wrong_record_is_one_line(small: Path, change: dict[str, Any], message: str) -> None:
    rows = read_rows(small)
    assert rows[0]["episode"] == 0
    write_rows(small, [rows[0], {**rows[1], **change}, *rows[2:]])
    with pytest.raises(TrajectoryError, match=message) as caught:
        compute_report(small)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"part": "vlgym/Other-v0"}, "of vlgym/Other-v0 is of no part that run.json names"),
        ({"part": ["x"]}, r"part is \['x'\], not str"),
        ({"episode": 12}, "episode 12 of vlgym/Walk-v0 is not one of the 2 planned"),
        ({"episode": -1}, "is not one of the 2 planned"),
        ({"episode": "0"}, "episode is '0', not int"),
    ],
)
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
    folder = write_run(tmp_path / "a", ScriptedPolicy(["no"]), episodes=1, **paying)
    assert compute_report(folder)["parts"][WALK]["return"]["mean"] == -16.0
    plan = write_run(tmp_path / "b", RandomPolicy(), [COIN], episodes=1, arguments={"parser": "plan"})
    rows = read_rows(plan)
    write_rows(plan, [{**rows[0], "actions": ["heads"] * 2, "reward": 4.0}, *rows[1:]])
    assert compute_report(plan)["parts"][COIN]["episodes"] == 1


def test_a_folder_that_is_no_evaluation_is_one_clear_line(tmp_path: Path, small: Path) -> None:
    with pytest.raises(TrajectoryError, match="nowhere is not a folder; name the folder that `vlgym eval --out` wrote"):
        compute_report(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrajectoryError, match=r"holds no run\.json; name the folder"):
        compute_report(tmp_path / "empty")
    TrajectoryWriter(tmp_path / "other", describe_run([make_walk()]))
    with pytest.raises(TrajectoryError, match="holds no evaluation"):
        compute_report(tmp_path / "other")
    (small / "metadata.jsonl").unlink()
    with pytest.raises(TrajectoryError, match=r"small holds no metadata\.jsonl"):
        compute_report(small)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "training"}, "holds no evaluation"), ({"format": 9}, "has format 9; this version reads 3 and 4"),
        ({"policy": None}, "'policy' is missing"), ({"policy": {"name": 3}}, "policy.name is 3"),
        ({"split": "dev"}, "split is 'dev'"), ({"parts": {}}, "parts is {}"), ({"parts": {WALK: 3}}, "is 3"),
        ({"prices": {"in": 1}}, "'out' is missing"), ({"prices": {"in": 1, "out": "x"}}, "prices is"),
        *[({"prices": {"in": price, "out": 1.0}}, "prices is") for price in (math.nan, math.inf, 1e308, -1.0)],
        ({"items": []}, "items is"), ({"items": [3]}, "items is"), ({"episodes": 0}, "episodes is 0"),
        ({"repeats": True}, "repeats is True"), ({"pictures": "blue"}, "pictures is 'blue'"),
        ({"planner": "none"}, "planner is 'none'"), ({"pictures": "grey"}, "the name of a part is 'vlgym/Walk-v0'"),
    ],
)  # fmt: skip
def test_a_wrong_header_is_one_line(small: Path, changes: dict[str, Any], message: str) -> None:
    part = json.loads((small / "run.json").read_text())["parts"][WALK]
    change_header(small, **(changes if {*changes} - {*FIELDS} else {"parts": {WALK: {**part, **changes}}}))
    with pytest.raises(TrajectoryError, match=message) as caught:
        compute_report(small)
    assert "\n" not in str(caught.value)
