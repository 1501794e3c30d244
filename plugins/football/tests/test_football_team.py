"""Football for a team: each agent's player, picture, action and pay."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from vlgym_football.engine import IDLE, Snapshot
from vlgym_football.match import for_players
from vlgym_football.pitch import MINE, WHITE, PitchPainter
from vlgym_football.plugin import TEAM
from vlgym_football.scenario import FOLDER, distance, read_file

from vlgym.errors import UserError
from vlgym.games.several import parallel_env
from vlgym.registry.making import make

ID = "vlgym/FootballTeam-v0"
SCENARIO = "closed_down"


@pytest.fixture(scope="module")
def pair() -> Iterator[Any]:
    """Two agents in one situation."""
    env = parallel_env(ID, scenario=SCENARIO)
    yield env
    env.close()


def now_of(env: Any) -> Snapshot:
    """The last frame of a parallel environment."""
    return env.table.game.match.now


def step(env: Any, *actions: str) -> Any:
    """One decision, an action for each agent."""
    return env.step({f"player_{seat}": f"<action>{action}</action>" for seat, action in enumerate(actions)})


def ring_at(picture: np.ndarray, place: np.ndarray, colour: tuple[int, int, int]) -> int:
    """Count the pixels of a colour within two radii of a place."""
    painter = PitchPainter(*picture.shape[:2])
    x, y = painter.pixel(place)
    reach = round(2 * painter.radius)
    part = picture[round(y) - reach : round(y) + reach + 1, round(x) - reach : round(x) + reach + 1].astype(int)
    return int(np.sum(np.abs(part - colour).max(axis=-1) < 40))


def test_each_agent_is_shown_its_own_player_in_the_red_ring_and_no_other(pair: Any) -> None:
    views, _ = pair.reset(seed=1)
    now = now_of(pair)
    assert now.owner == 1
    for seat, words in enumerate(("You have the ball.", "Your number 2 has the ball.")):
        picture, text = views[f"player_{seat}"]["image"], views[f"player_{seat}"]["text"]
        assert ring_at(picture, now.left[seat + 1], MINE) > 20
        assert ring_at(picture, now.left[2 - seat], MINE) == 0
        assert f"You play number {seat + 2}. {words}" in text
    white = [ring_at(views[f"player_{seat}"]["image"], now.left[1], WHITE) for seat in (0, 1)]
    assert white[1] > white[0]


def test_the_text_says_whose_the_ball_is(pair: Any) -> None:
    pair.reset(seed=1)
    game, now = pair.table.game, now_of(pair)
    for team, words in ((1, "The opponents have the ball."), (-1, "Nobody has the ball.")):
        game.match.now = replace(now, owner_team=team)
        assert words in game.tell(0)


@pytest.mark.parametrize("players", [3, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (2, 4))])
def test_an_agents_action_moves_its_own_player_only(players: int) -> None:
    """One agent after the other runs left. The first, with the ball, only turns."""
    env = parallel_env(ID, players=players, scenario=SCENARIO, image_size=(32, 48))
    moved = []
    for mover in range(players):
        env.reset(seed=1)
        before = now_of(env).left
        infos = step(env, *("left" if seat == mover else IDLE for seat in range(players)))[4]
        step(env, *(IDLE for _ in range(players)))
        moved.append(now_of(env).left[1:, 0] - before[1:, 0])
        held = [infos[f"player_{seat}"]["sticky"] for seat in range(players)]
        assert held == [["left"] if seat == mover else [] for seat in range(players)]
    env.close()
    assert len(moved[0]) == players
    for player in range(1, players):
        others = [moved[mover][player] for mover in range(players) if mover != player]
        assert moved[player][player] < min(others) - 0.005


def test_only_the_agent_of_the_player_with_the_ball_can_kick_it(pair: Any) -> None:
    balls = []
    for actions in ((IDLE, IDLE), (IDLE, "shot"), ("shot", IDLE)):
        pair.reset(seed=1)
        step(pair, *actions)
        step(pair, IDLE, IDLE)
        balls.append(now_of(pair).ball)
    assert np.array_equal(balls[0], balls[1])
    assert balls[2][0] > balls[0][0] + 0.2


def test_a_decision_holds_for_five_frames_or_as_many_as_wanted(pair: Any) -> None:
    other = parallel_env(ID, scenario=SCENARIO, frame_skip=2, image_size=(32, 48))
    for env, frames, turns in ((pair, 5, 24), (other, 2, 60)):
        env.reset(seed=2)
        first = now_of(env).frame
        step(env, IDLE, IDLE)
        assert (now_of(env).frame - first, env.table.game.max_turns) == (frames, turns)
    other.close()


def test_a_goal_is_paid_to_all_and_ends_the_attack(pair: Any) -> None:
    """The first of ten seeds in which the team scores."""
    game = pair.table.game
    for seed in range(10):
        pair.reset(seed=seed)
        while pair.agents:
            _, paid, ended, cut, infos = step(pair, *(game.advise(seat) for seat in (0, 1)))
            if pair.agents:
                assert paid == {"player_0": 0.0, "player_1": 0.0}
        if infos["player_0"]["ending"] == "goal":
            break
    assert paid == {"player_0": 1.0, "player_1": 1.0}
    assert all(ended.values())
    assert not any(cut.values())
    assert [(info["success"], info["score"]) for info in infos.values()] == [(True, 1.0)] * 2


def test_an_attack_whose_time_is_over_is_truncated(pair: Any) -> None:
    pair.reset(seed=1)
    match = pair.table.game.match
    match.scenario = replace(match.scenario, duration=match.now.frame + 1)
    _, _, ended, cut, _ = step(pair, IDLE, IDLE)
    assert (set(ended.values()), set(cut.values())) == ({False}, {True})


def test_every_situation_has_a_ball_carrier_and_grows_with_the_players() -> None:
    shipped = read_file(FOLDER / "team.yaml")
    assert tuple(shipped) == TEAM
    for name, scenario in shipped.items():
        first = scenario.left[1]
        assert distance((first.x, first.y), scenario.ball) < 1.1, name
        for players in (2, 3, 4):
            sized = for_players(scenario, players)
            assert sum(p.controllable for p in sized.left) == players
            assert len(sized.right) == len(scenario.right) - 4 + players >= 3, name
            assert sized.right[0].role == "GK"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"players": 5}, "players"), ({"scenario": "R1_P_1"}, "closed_down"), ({"seat": 2}, "seat")],
)
def test_a_wrong_argument_is_refused(arguments: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make(ID, **arguments)
