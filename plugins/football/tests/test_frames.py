"""Frames as snapshots made by hand: reward, decision points and the drawn view."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from vlgym_football.engine import Snapshot
from vlgym_football.match import RUN_FRAMES, DecisionMaker, can_run_on, count_goals, find_end
from vlgym_football.pitch import OURS, THEIRS, WHITE, PitchPainter
from vlgym_football.reward import RewardMeter, rate_pass, rate_shot
from vlgym_football.scenario import get_scenario
from vlgym_football.tactics import find_fetcher


def snap(ball: tuple[float, float] = (0.0, 0.0), **changes: Any) -> Snapshot:
    """Return a snapshot: our second of three has the ball, three opponents are far."""
    changes.setdefault("left", [[-1.0, 0.0], [0.0, 0.0], [0.2, 0.2]])
    changes.setdefault("right", [[1.0, 0.0], [0.5, 0.0], [0.6, -0.3]])
    pace = changes.pop("pace", [0.0, 0.0, 0.0])
    arrays: dict[str, Any] = {"ball": [*ball, 0.1], "ball_velocity": pace}
    for side in ("left", "right"):
        places = np.array(changes.pop(side), dtype=float)
        arrays |= {side: places, f"{side}_velocity": changes.pop(f"{side}_velocity", np.zeros_like(places))}
        changes[f"{side}_active"] = np.ones(len(places), bool)
    values = {"frame": 1, "owner_team": 0, "owner": 1, "controlled": 1, "score": (0, 0), "mode": 0, **changes}
    return Snapshot(**{name: np.array(value, dtype=float) for name, value in arrays.items()}, **values)


LOOSE = snap(owner_team=-1, owner=-1)
NEAR = (0.8, 0.0)


def pay(meter: RewardMeter, *frames: tuple[Snapshot, str]) -> list[float]:
    return [meter.pay(now, action)[0] for now, action in frames]


def begun(**changes: object) -> RewardMeter:
    """Return a meter that has seen its unpaid first frame and one frame with owner 1."""
    meter = RewardMeter(400)
    assert pay(meter, (snap(**changes), "shot"), (snap(**changes), "right"))[0] == 0
    return meter


def test_new_ground_pays_16_for_each_unit_and_only_once_also_at_a_reception() -> None:
    places = (snap((x, 0.0)) for x in (0.1, 0.05, 0.1, 0.2))
    paid = pay(begun(), *((place, "right") for place in places))
    assert paid == pytest.approx([20 * 0.8 * 0.1, 0, 0, 1.6])
    flying = snap((0.3, 0.0), owner_team=-1, owner=-1)
    assert pay(begun(), (flying, "right"), (snap((0.4, 0.0)), "right")) == pytest.approx([0, 20 * 0.8 * 0.4])


def test_passing_an_opponent_pays_an_eleventh_and_falling_back_takes_it_back() -> None:
    paid = pay(begun(), (snap((0.55, 0.0)), "right"), (snap((0.45, 0.0)), "left"))
    assert paid == pytest.approx([20 * (0.8 * 0.55 + 1 / 11), -20 / 11])


def test_a_goal_pays_40_once() -> None:
    goal = snap(score=(1, 0), owner_team=-1, owner=-1)
    assert pay(begun(), (goal, "right"), (goal, "right")) == pytest.approx([40, 0])


def test_a_stolen_ball_pays_by_its_frame_and_ends_unless_the_game_goes_on() -> None:
    stolen = snap(owner_team=1, owner=2, frame=100)
    assert begun().pay(stolen, "right") == (pytest.approx(20 * 100 / 400), True)
    meter = RewardMeter(3000, possession=False)
    meter.pay(snap(), "right")
    assert meter.pay(stolen, "right") == (0.0, False)


@pytest.mark.parametrize(
    ("opponents", "worth"),
    [
        ([[0.5, 0.0]], 0.5 / 11),  # straight ahead
        ([[0.5, 0.0], [0.0, 0.1]], 0.5 / 11),  # and square at 0.1: 0.1 / 1
        ([[0.5, 0.0], [-0.03, 0.0]], 0.03),  # and behind
        ([[0.3, 0.3]], math.hypot(0.3, 0.3) / (10 * math.sqrt(0.5) + 1)),
    ],
)
def test_s_pass_is_the_least_over_the_opponents(opponents: list, worth: float) -> None:
    assert rate_pass(np.zeros(2), np.array(opponents)) == pytest.approx(worth)


def test_passes_pay_at_reception_and_each_further_one_three_quarters() -> None:
    field = {"right": [[0.5, 0.0]]}
    meter = begun(**field)
    loose = snap(owner_team=-1, owner=-1, **field)
    paid = pay(meter, (snap(**field), "short_pass"), (loose, "builtin_ai"), (snap(owner=2, **field), "builtin_ai"))
    assert paid == pytest.approx([0, 0, 20 * 20 * 0.5 / 11])
    paid = pay(meter, (snap(owner=2, **field), "high_pass"), (snap(owner=0, **field), "builtin_ai"))
    assert paid[1] == pytest.approx(20 * 20 * 0.5 / 11 * 0.75)


def test_a_pass_back_to_oneself_pays_nothing() -> None:
    assert pay(begun(), (snap(), "long_pass"), (LOOSE, "builtin_ai"), (snap(), "builtin_ai")) == [0, 0, 0]


def test_s_shot_is_the_widest_lane_times_the_nearness() -> None:
    # With an opponent at (0.9, 0.1) the best goal point is the farthest, y = -0.044.
    steps = np.arange(1, 101) / 100
    nearest = np.hypot(0.8 + 0.2 * steps - 0.9, -0.044 * steps - 0.1).min()
    assert rate_shot(snap(NEAR, right=[[0.9, 0.1]])) == pytest.approx(nearest)
    # An opponent far behind: the nearest point is the lane's first.
    lane = math.hypot(0.9 + 0.6 / 100, 0.044 / 100)
    assert rate_shot(snap((0.4, 0.0), right=[[-0.5, 0.0]])) == pytest.approx(0.4 * lane)


def test_a_shot_pays_at_most_a_third_of_a_goal_and_once_while_pending() -> None:
    paid = pay(begun(ball=NEAR), (snap(NEAR), "shot"), (snap(NEAR), "shot"))
    assert paid == pytest.approx([20 * 2 / 3, 0])


def test_a_ball_lost_during_a_pending_shot_is_no_steal_unless_nobody_had_it() -> None:
    meter = begun(ball=NEAR)
    pay(meter, (snap(NEAR), "shot"))
    assert meter.pay(snap(NEAR, owner_team=1, owner=0, frame=200), "shot")[1] is False
    meter = begun(ball=NEAR)
    assert pay(meter, (snap(NEAR), "shot"), (snap((0.9, 0.0), owner_team=-1, owner=-1), "builtin_ai"))[1] == 0
    lost = snap((0.95, 0.0), owner_team=1, owner=0, frame=200)
    assert meter.pay(lost, "builtin_ai") == (pytest.approx(10), True)


def test_a_goal_against_ends_the_attack_under_its_name_and_costs_one() -> None:
    against = snap(score=(0, 1))
    assert find_end(against, get_scenario("R1_P_1"), {"mode": 0, "team": 0}) == "goal against"
    assert count_goals(snap(), against) == -1


def test_the_attacker_who_meets_a_rolling_ball_first_fetches_it() -> None:
    places = [[-1.0, 0.0], [0.0, 0.0], [0.5, 0.0]]
    for pace, fetcher in ((0.0, 0), (0.03, 1)):
        assert find_fetcher(snap((0.1, 0.0), left=places, pace=[pace, 0.0, 0.0])) == fetcher


def run(maker: DecisionMaker, action: str, *later: Snapshot) -> list[str]:
    """Play a reply against snapshots (the last one repeats); return the frames' actions."""
    frames = maker.frames(action, snap())
    played = [next(frames)]
    for count in range(500):
        try:
            played.append(frames.send((later or (snap(),))[min(count, len(later) - 1)]))
        except StopIteration:
            break
    return played


@pytest.fixture
def started() -> DecisionMaker:
    """A maker after its first reply."""
    maker = DecisionMaker()
    assert run(maker, "short_pass") == ["short_pass"]
    assert maker.previous_action == "", "the first reply is remembered"
    return maker


def test_a_new_direction_is_one_frame_and_the_same_again_runs_on(started: DecisionMaker) -> None:
    assert run(started, "top") == ["top"]
    assert run(started, "top") == ["top"] * RUN_FRAMES
    assert run(started, "left") == ["left"]


def test_running_stops_before_an_opponent_and_before_the_line(started: DecisionMaker) -> None:
    run(started, "right")
    moving = [[0, 0], [0.02, 0], [0, 0]]
    ahead = snap(left_velocity=moving, right=[[1.0, 0.0], [0.1, 0.0], [0.6, -0.3]])
    assert run(started, "right", snap(), snap(), ahead) == ["right"] * 3
    assert not can_run_on(snap((0.96, 0.0), left=[[-1, 0], [0.96, 0.0], [0, 0]], left_velocity=moving))


def test_a_pass_is_repeated_until_somebody_has_the_ball(started: DecisionMaker) -> None:
    played = run(started, "short_pass", snap(), snap(), LOOSE, LOOSE, snap(owner=2))
    assert played == ["short_pass", "right", "short_pass", "builtin_ai", "builtin_ai"]


@pytest.mark.parametrize("published", [True, False])
def test_the_published_program_differs_in_three_ways(published: bool) -> None:
    # A frame of the direction follows a pass even once the ball is away.
    maker = DecisionMaker(started=True, published=published)
    run(maker, "top")
    second = "top" if published else "builtin_ai"
    assert run(maker, "shot", LOOSE, LOOSE, LOOSE, snap(owner=2)) == ["shot", second, *["builtin_ai"] * 2]

    # The first reply's direction is not kept.
    maker = DecisionMaker(published=published)
    run(maker, "top")
    direction = "right" if published else "top"
    assert run(maker, "short_pass", snap(), snap(owner=2)) == ["short_pass", direction]

    # An opponent's ball is sought at our player of its number.
    maker = DecisionMaker(previous_action="top", started=True, published=published)
    assert len(run(maker, "top", snap(owner_team=1, owner=1))) == (RUN_FRAMES if published else 1)


def count_pixels(now: Snapshot, place: tuple[float, float], colour: tuple[int, int, int], reach: float) -> int:
    """Draw a snapshot; count the pixels of (nearly) a colour within `reach` radii of a place."""
    painter = PitchPainter(336, 448)
    picture = painter.draw(now, 400, ())
    x, y = painter.pixel(np.array(place))
    rows, columns = np.mgrid[:336, :448]
    inside = np.hypot(columns - x, rows - y) <= reach * painter.radius
    return int((inside & (np.abs(picture.astype(int) - colour).max(axis=2) < 40)).sum())


def test_a_player_who_is_sent_off_is_not_drawn() -> None:
    now = replace(snap(), right_active=np.array([True, True, False]))
    assert count_pixels(now, (0.5, 0.0), THEIRS, 1.0) > 40
    assert count_pixels(now, (0.6, -0.3), THEIRS, 1.0) == 0


def test_players_stand_in_their_colours_and_an_opponent_with_the_ball_in_a_white_ring() -> None:
    now = snap((0.5, 0.0), owner_team=1, owner=1, controlled=2)
    for team, colour in ((now.left, OURS), (now.right, THEIRS)):
        assert all(count_pixels(now, place, colour, 1.0) > 40 for place in team)
    assert count_pixels(now, (0.5, 0.0), WHITE, 1.5) > count_pixels(now, (0.6, -0.3), WHITE, 1.5) + 20
