"""Decision points: what one reply plays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vlgym_football.engine import Snapshot
from vlgym_football.match import RUN_FRAMES, DecisionMaker, can_run_on

Make = Callable[..., Snapshot]


def run(maker: DecisionMaker, action: str, now: Snapshot, later: list[Snapshot]) -> list[str]:
    """Play a reply against a list of snapshots (the last one repeats); return the frames' actions."""
    frames = maker.frames(action, now)
    played = [next(frames)]
    rest = list(later) or [now]
    while len(played) < 500:
        try:
            played.append(frames.send(rest.pop(0) if len(rest) > 1 else rest[0]))
        except StopIteration:
            break
    return played


@pytest.fixture
def started(snapshot: Make) -> DecisionMaker:
    """A maker after its first reply."""
    maker = DecisionMaker()
    run(maker, "right", snapshot(), [])
    return maker


def test_the_first_reply_is_one_frame_and_is_not_remembered(snapshot: Make) -> None:
    maker = DecisionMaker()
    assert run(maker, "short_pass", snapshot(), []) == ["short_pass"]
    assert maker.previous_action == ""


def test_a_new_direction_is_one_frame_and_the_same_again_runs_on(started: DecisionMaker, snapshot: Make) -> None:
    assert run(started, "top", snapshot(), []) == ["top"]
    assert run(started, "top", snapshot(), []) == ["top"] * RUN_FRAMES
    assert run(started, "left", snapshot(), []) == ["left"]


def test_running_stops_before_an_opponent_and_before_the_line(started: DecisionMaker, snapshot: Make) -> None:
    run(started, "right", snapshot(), [])
    ahead = snapshot(left_velocity=[[0, 0], [0.02, 0], [0, 0]], right=[[1.0, 0.0], [0.1, 0.0], [0.6, -0.3]])
    assert run(started, "right", snapshot(), [snapshot(), snapshot(), ahead]) == ["right"] * 3
    edge = snapshot((0.96, 0.0), left=[[-1, 0], [0.96, 0.0], [0, 0]], left_velocity=[[0, 0], [0.02, 0], [0, 0]])
    assert not can_run_on(edge)


def test_a_pass_is_repeated_between_running_frames_until_somebody_has_the_ball(
    started: DecisionMaker, snapshot: Make
) -> None:
    loose = snapshot(owner_team=-1, owner=-1)
    later = [snapshot(), snapshot(), loose, loose, snapshot(owner=2)]
    assert run(started, "short_pass", snapshot(), later) == [
        "short_pass",
        "right",
        "short_pass",
        "builtin_ai",
        "builtin_ai",
    ]


def test_published_a_frame_of_the_direction_follows_a_pass_even_once_the_ball_is_away(snapshot: Make) -> None:
    loose, taken = snapshot(owner_team=-1, owner=-1), snapshot(owner=2)
    for published, second in ((True, "top"), (False, "builtin_ai")):
        maker = DecisionMaker(started=True, published=published)
        run(maker, "top", snapshot(), [])
        assert run(maker, "shot", snapshot(), [loose, loose, loose, taken]) == ["shot", second, *["builtin_ai"] * 2]


def test_published_the_first_replys_direction_is_not_kept(snapshot: Make) -> None:
    for published, direction in ((True, "right"), (False, "top")):
        maker = DecisionMaker(published=published)
        run(maker, "top", snapshot(), [])
        later = [snapshot(), snapshot(owner=2)]
        assert run(maker, "short_pass", snapshot(), later) == ["short_pass", direction]


def test_published_an_opponents_ball_is_sought_at_our_player_of_its_number(snapshot: Make) -> None:
    for published, frames in ((True, RUN_FRAMES), (False, 1)):
        maker = DecisionMaker(previous_action="top", started=True, published=published)
        assert len(run(maker, "top", snapshot(), [snapshot(owner_team=1, owner=1)])) == frames
