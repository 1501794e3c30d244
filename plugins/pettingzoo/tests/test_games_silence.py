"""A reply without an action pays a seat the same on every path, and never a gain."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.games.loop import RunningGame, play_games
from vlgym.games.several import SKILL
from vlgym.games.table import Reading, Table
from vlgym.games.tournament import RECORDS, Tournament, name_seat
from vlgym.play.rollout import Runner
from vlgym.play.trajectory import read_trajectories
from vlgym.registry import get_registry
from vlgym.types import Parsed, Reply, StepRecord, Turn

FAST = ("KuhnPoker", "CoinGame")  # in turn, at once
GAMES = [
    pytest.param(spec.id, marks=() if any(f"/{name}-" in spec.id for name in FAST) else pytest.mark.exhaustive)
    for spec in get_registry().specs.values()
    if SKILL in spec.skills and not spec.replaced_by
]
Silent = Callable[[int], bool]
Column = tuple[float, bool]  # a seat's return and success


def small(env_id: str) -> dict[str, Any]:
    return {"image_size": (64, 64), **({"max_turns": 8} if "CoinGame" in env_id else {})}


class Player:
    """Plays legal actions in a fixed order, and says nothing in the turns of `silent`."""

    def __init__(self, silent: Silent = lambda turn: False, name: str = "quiet") -> None:
        self.silent, self.name = silent, name

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply(self.say(turn.env.unwrapped, turn.turn)) for turn in turns]

    def say(self, env: Any, turn: int) -> str:
        legal = env.legal_actions()
        return "?" if self.silent(turn) else env.parser.format([legal[(5 * turn + 2) % len(legal)]])


class Seats:
    """The players of a table's seats, one of which is silent at times."""

    def __init__(self, table: Table, seat: int, silent: Silent) -> None:
        self.table, self.players = table, [Player() for _ in table.spaces]
        self.players[seat] = Player(silent)

    def reply(self, seat: int) -> str:
        return self.players[seat].reply([self.table.turn(seat)])[0].text


def play_one_seat(env_id: str, seat: int, seed: int, silent: Silent) -> Column:
    """`gymnasium.make`: one agent's view, the others policies."""
    env = gymnasium.make(env_id, seat=seat, opponents=Player(), **small(env_id))
    _, info = env.reset(seed=seed)
    player, total, over, turn = Player(silent), 0.0, False, 0
    while not over:
        _, reward, terminated, truncated, info = env.step(player.say(env.unwrapped, turn))
        total, over, turn = total + float(reward), terminated or truncated, turn + 1
    assert env.unwrapped.episode_return == total
    env.close()
    return total, info["success"]


def play_runner(env_id: str, seat: int, seed: int, silent: Silent) -> Column:
    """The records that a learner gets of one seat's environment."""
    runner = Runner([vlgym.make(env_id, seat=seat, opponents=Player(), **small(env_id))], episodes=1, seed=seed)
    records = []
    while not runner.done:
        records += runner.step(Player(silent))
    runner.close()
    return add_up(records)


def add_up(records: Sequence[StepRecord]) -> Column:
    return sum(record.reward for record in records), records[-1].success


def play_table(env_id: str, seat: int, seed: int, silent: Silent) -> tuple[Column, Table]:
    table = vlgym.open_table(env_id, **small(env_id))
    table.reset(seed=seed)
    seats = Seats(table, seat, silent)
    while not table.over:
        table.step({each: seats.reply(each) for each in table.movers})
    return (table.returns[seat], table.info(seat)["success"]), table


def play_records(env_id: str, seat: int, seed: int, silent: Silent) -> Column:
    """The records of the loop that tournaments and self-play share."""
    table = vlgym.open_table(env_id, **small(env_id))
    table.reset(seed=seed)
    game = RunningGame(table, 0, Seats(table, seat, silent).players, dict.fromkeys(range(table.game.seats), ""))
    left = [game]
    list(play_games(1, lambda _: left.pop() if left else None))
    assert game.error is None
    return add_up(game.records.get(seat, []))


def play_parallel(env_id: str, seat: int, seed: int, silent: Silent) -> Column:
    env = vlgym.parallel_env(env_id, **small(env_id))
    _, infos = env.reset(seed=seed)
    seats, agent, total = Seats(env.table, seat, silent), f"player_{seat}", 0.0
    while env.agents:
        _, rewards, _, _, infos = env.step({each: seats.reply(int(each[7:])) for each in env.agents})
        total += rewards[agent]
    return total, infos[agent]["success"]


def play_aec(env_id: str, seat: int, seed: int, silent: Silent) -> Column:
    env = vlgym.aec_env(env_id, **small(env_id))
    env.reset(seed=seed)
    seats, agent, total, success = Seats(env.table, seat, silent), f"player_{seat}", 0.0, False
    for each in env.agent_iter():
        _, reward, terminated, truncated, info = env.last(observe=False)
        if each == agent:
            total, success = total + reward, info["success"]
        env.step(None if terminated or truncated else seats.reply(int(each[7:])))
    return total, success


def play_tournament(env_id: str, seat: int, number: int, silent: Silent, out: Path) -> list[Column]:
    """A result's column and the records' column."""
    both = {"quiet": Player(silent), "legal": Player(name="legal")}
    results = Tournament(env_id, both, number + 1, out, arguments=small(env_id)).play()
    (result,) = [each for each in results if each.number == number and each.players[seat] == "quiet"
                 and each.players.count("quiet") == 1]  # fmt: skip
    part = name_seat(result.players, seat)
    (records,) = [episode for episode in read_trajectories(out / RECORDS)
                  if (episode[0].part, episode[0].episode) == (part, number)]  # fmt: skip
    return [(result.returns[seat], records[-1].success), add_up(records)]


def list_silences(env_id: str, seat: int, seed: int) -> dict[str, Silent]:
    """Silent always, once in the middle, and in the last turn of the game without silence."""
    own = play_table(env_id, seat, seed, lambda turn: False)[1].turns[seat]
    return {
        "never": lambda turn: False,
        "always": lambda turn: True,
        "middle": lambda turn: turn == own // 2,
        "end": lambda turn: turn >= own - 1,
    }


@pytest.mark.parametrize("env_id", GAMES)
def test_a_seat_is_paid_the_same_on_every_path(env_id: str, tmp_path: Path) -> None:
    warnings.simplefilter("ignore")
    paths = (play_runner, play_records, play_parallel, play_aec)
    for seat in range(vlgym.open_table(env_id, **small(env_id)).game.seats):
        seed = episode_seed(env_id, "test", seat % 2)
        silences = list_silences(env_id, seat, seed)
        for name in ("always", "middle") if seat % 2 else ("never", "end"):
            silent = silences[name]
            expected = play_one_seat(env_id, seat, seed, silent)
            columns = [play_table(env_id, seat, seed, silent)[0]]
            columns += [play(env_id, seat, seed, silent) for play in paths]
            columns += play_tournament(env_id, seat, seat % 2, silent, tmp_path / f"{seat}-{name}")
            assert columns == [expected] * len(columns), (seat, name)


@pytest.mark.parametrize("env_id", GAMES)
def test_silence_pays_no_more_than_the_moves_that_stood_for_it_and_never_wins(env_id: str) -> None:
    for number in range(2):
        seat, seed = number % 2, episode_seed(env_id, "val", number)
        for name, silent in list_silences(env_id, seat, seed).items():
            (paid, success), quiet = play_table(env_id, seat, seed, silent)
            spoken = vlgym.open_table(env_id, **small(env_id))
            spoken.reset(seed=seed)
            for entry in quiet.log:
                spoken.play({int(each): Reading(move, Parsed((move,)), None) for each, move in entry["moves"].items()})
            assert paid <= spoken.returns[seat], (seed, name)
            assert success <= spoken.success[seat]
            mine, its = ([*table.returns[:seat], *table.returns[seat + 1 :]] for table in (quiet, spoken))
            assert mine == its
            assert name != "always" or (paid <= 0 and not success)
