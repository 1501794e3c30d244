"""Tournaments: seatings, results, ratings, and a kill that loses and doubles nothing."""

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, combinations
from operator import attrgetter
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from commands import invoke
from fault_server import FaultServer
from toy_games import NIM
from toys import installed

from vlgym.errors import TrajectoryError, UserError
from vlgym.files import seal, unseal
from vlgym.games.ratings import ELO, fit, rate, sample
from vlgym.games.standings import is_cooperative, write_markdown, write_tables
from vlgym.games.tournament import RECORDS, RESULTS, Result, Tournament, list_seatings, read_results
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.play.trajectory import METADATA, read_trajectories
from vlgym.types import Reply, Turn

NIM_ID, MEET_ID = "vlgym/Nim-v0", "vlgym/Meet-v0"


class Mute:
    """Never says anything that can be read."""

    name = "mute"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply("I do not know.") for _ in turns]


def players() -> dict[str, object]:
    return {"oracle": OraclePolicy(fallback=True), "random": RandomPolicy(), "mute": Mute()}


def play(out: Path, env_id: str = NIM_ID, games: int = 3, **more: object) -> list[Result]:
    return Tournament(env_id, players(), games, out, **more).play()  # type: ignore[arg-type]


def won(number: int, one: str, other: str, first: float, second: float) -> Result:
    return Result(number, number, (one, other), (first, second), (0, 0), 4, False)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tournament that is over."""
    folder = tmp_path_factory.mktemp("played") / "out"
    with installed(NIM):
        play(folder)
    return folder


@pytest.fixture
def copied(played: Path, tmp_path: Path) -> Path:
    return shutil.copytree(played, tmp_path / "out")


def resume(folder: Path) -> Tournament:
    return Tournament(NIM_ID, players(), 3, folder, resume=True)  # type: ignore[arg-type]


def test_every_pair_plays_every_seed_from_both_seats(copied: Path) -> None:
    results = read_results(copied)
    assert len(results) == resume(copied).total == 3 * 3 * 2
    seats = {(result.players, result.number) for result in results}
    assert seats == {(players[::-1], number) for players, number in seats}
    assert len(seats) == len(results)
    assert len({(result.number, result.seed) for result in results}) == 3


def test_the_oracle_wins_and_unreadable_replies_are_counted(played: Path) -> None:
    results = read_results(played)
    points = {name: np.mean([r.points(name) for r in results if name in r.players]) for name in players()}
    assert points["oracle"] > max(points["random"], points["mute"])
    for result in results:
        assert [count > 0 for count in result.invalid] == [name == "mute" for name in result.players]


def test_each_seat_is_recorded_and_its_rewards_add_up_to_its_return(played: Path) -> None:
    results = read_results(played)
    episodes = list(read_trajectories(played / RECORDS))
    assert len(episodes) == 2 * len(results)
    returns = {}
    for result in results:
        for seat, name in enumerate(result.players):
            returns[result.number, f"{name} in seat {seat} against {result.players[1 - seat]}"] = result.returns[seat]
    for episode in episodes:
        due = returns[episode[0].episode, episode[0].part]
        assert sum(record.reward for record in episode) == due
        assert [record.turn for record in episode] == list(range(len(episode)))
        assert episode[-1].terminated or episode[-1].truncated
        assert not any(record.terminated or record.truncated for record in episode[:-1])
        assert episode[-1].success == (due > 0)
    lucky = [result for result in results if sum(result.returns) < 0]
    assert lucky
    for result in lucky:  # a random move that stood for an unreadable reply took the last stone
        assert result.return_of("mute") == 0.0
        (other,) = set(result.players) - {"mute"}
        assert (result.points("mute"), result.points(other)) == (0.0, 1.0)


def test_a_tournament_that_was_killed_goes_on_to_the_same_end(tmp_path: Path, played: Path) -> None:
    left: list[Result] = []

    def stop(result: Result) -> None:
        left.append(result)
        if len(left) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Tournament(NIM_ID, players(), 3, tmp_path / "a").play(stop)  # type: ignore[arg-type]
    # a kill between the records of a game and its result, within a line
    lines = (tmp_path / "a" / RESULTS).read_text().splitlines(keepends=True)
    (tmp_path / "a" / RESULTS).write_text("".join(lines[:-1]))
    with (tmp_path / "a" / RECORDS / METADATA).open("a") as file:
        file.write('{"episode": 0, "part": "ora')
    assert play(tmp_path / "a", resume=True) == read_results(tmp_path / "a") == read_results(played)
    one, other = (chain(*read_trajectories(folder / RECORDS)) for folder in (tmp_path / "a", played))
    place = attrgetter("part", "episode", "turn", "reply")
    assert sorted(map(place, one)) == sorted(map(place, other))


@pytest.mark.parametrize(("change", "named"), [
    ({}, "has number 0: .* twice"), ({"number": 999}, "has number 999"), ({"number": -1}, "has number -1"),
    ({"players": ["oracle", "stranger"]}, "has players .*stranger"), ({"players": ["oracle"]}, "has players"),
    ({"returns": [99.0, -99.0]}, r"has returns \(99.0, -99.0\)"), ({"returns": [0.0]}, "has returns"),
    ({"returns": [99.0, -99.0], "turns": 10**6}, "has turns"), ({"seed": 5}, "has seed 5"),
    ({"invalid": [-1, 0]}, "has invalid"), ({"returns": ["1", "2"]}, "cannot be read: returns is"),
    ({"returns": [1e308, -1e308]}, "cannot be read: returns is"), ({"number": "3"}, "cannot be read: number is"),
])  # fmt: skip
def test_a_result_that_no_game_can_have_had_is_refused_before_anything_is_played(copied, change, named):
    rows = [unseal(json.loads(line)) for line in (copied / RESULTS).read_text().splitlines()]
    rows[3].update(change)
    rows += [] if change else rows[:6]
    (copied / RESULTS).write_text("".join(json.dumps(seal(row)) + "\n" for row in rows))
    before = (copied / RESULTS).read_bytes()
    with pytest.raises(TrajectoryError, match=named) as error:
        resume(copied)
    assert "\n" not in str(error.value)
    assert (copied / RESULTS).read_bytes() == before


@pytest.mark.parametrize(("change", "named"), [
    (lambda lines: lines[:1] + lines, "a turn of game .* is missing or recorded twice"),
    (lambda lines: lines[1:], "a turn of game .* is missing or recorded twice"),
    (lambda lines: lines[:-1], "turns of game .* are missing"),
    (lambda lines: [], "turns of game .* are missing"),
])  # fmt: skip
def test_doubled_and_dropped_turns_are_found(copied: Path, change: Any, named: str) -> None:
    path = copied / RECORDS / METADATA
    lines = change(path.read_text().splitlines(keepends=True))
    path.write_text("".join(lines)) if lines else path.unlink()
    with pytest.raises(TrajectoryError, match=named):
        resume(copied)


def test_two_processes_do_not_play_in_one_folder(tmp_path: Path) -> None:
    first = Tournament(NIM_ID, players(), 1, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="Another process is at work in"):
        play(tmp_path, games=1, resume=True)
    assert first.play() == play(tmp_path, games=1, resume=True)


def test_ratings_are_the_most_likely_ones_and_relative_to_their_mean() -> None:
    points = np.array([[0.0, 30.0], [10.0, 0.0]])
    one, other = fit(points)
    assert one + other == pytest.approx(0)
    # The maximum of 30 log p + 10 log (1 - p) and the prior, by bisection.
    low, high = 0.0, 5.0
    for _ in range(40):
        half = (low + high) / 2
        p, alone = 1 / (1 + np.exp(-2 * half)), 1 / (1 + np.exp(-half))
        low, high = (half, high) if 30 * (1 - p) - 10 * p - (alone - 0.5) > 0 else (low, half)
    assert one == pytest.approx(ELO * low, abs=0.05)


def test_the_better_player_is_first_and_its_interval_shrinks_with_games() -> None:
    rng = np.random.default_rng(0)

    def results(games: int) -> list[Result]:
        rows = []
        for number in range(games):
            for names in (("weak", "strong"), ("strong", "weak")):
                first = 1.0 if (rng.random() < 0.75) == (names[0] == "strong") else -1.0
                rows.append(won(number, *names, first, -first))
        return rows

    few, many = rate(results(10)), rate(results(160))
    assert [each.name for each in many] == ["strong", "weak"]
    assert all(each.low <= each.rating <= each.high for each in many)
    assert many[0].high - many[0].low < (few[0].high - few[0].low) / 2
    assert many[0].points == pytest.approx(0.75, abs=0.06)
    assert many[0].games == 320


@pytest.mark.parametrize("truth", [(0.0, 0.0), pytest.param((100.0, 0.0, -100.0), marks=pytest.mark.exhaustive)])
def test_the_interval_holds_the_true_rating_in_95_of_100(truth: tuple[float, ...]) -> None:
    rng = np.random.default_rng(1)
    strengths = np.array(truth)
    expected = 1 / (1 + 10 ** ((strengths[None, :] - strengths[:, None]) / 400))
    coverage = []
    for _ in range(150):
        points = np.zeros(expected.shape)
        for one, other in combinations(range(len(truth)), 2):
            points[one, other] = rng.binomial(20, expected[one, other])
            points[other, one] = 20 - points[one, other]
        low, high = np.percentile(sample(points, rng), [2.5, 97.5], axis=0)
        coverage.append((low <= strengths) & (strengths <= high))
    assert 0.91 <= np.mean(coverage) <= 0.985


def test_a_player_who_never_lost_has_a_rating_without_an_upper_end() -> None:
    best, worst = rate([won(n, "a", "b", 1.0, -1.0) for n in range(20)])
    assert (best.name, worst.name) == ("a", "b")
    assert 200 < best.rating < 2000
    assert best.interval == f"{best.low:+.0f} to unbounded"
    assert (best.high, worst.low) == (np.inf, -np.inf)
    assert best.low > worst.high


def test_games_with_the_same_moves_are_counted_once(tmp_path: Path) -> None:
    results = [replace(won(n, "a", "b", 1.0, -1.0), moves=moves) for n, moves in enumerate("xxy")]
    page = write_markdown("t", results, rate(results))
    assert "2 of the 3 games differ in their moves" in page
    write_tables(tmp_path, "t", results, rate(results))
    table = json.loads((tmp_path / "table.json").read_text(), parse_constant=pytest.fail)
    assert (table["different_games"], table["ratings"][0]["high"]) == (2, None)


def test_a_game_that_pays_both_the_same_has_no_ratings() -> None:
    results = [won(0, "a", "b", 2.0, 2.0), won(0, "b", "a", 1.0, 1.0)]
    assert is_cooperative(results)
    page = write_markdown("t", results, rate(results))
    assert "| a and b | 2 | 1.500 |" in page
    assert "rating |" not in page
    assert not is_cooperative([won(0, "a", "b", 0.0, 0.0)])


def test_pairs_are_counted_from_the_side_of_the_first() -> None:
    results = [won(0, "a", "b", 1, -1), won(0, "b", "a", 0, 0), won(1, "a", "b", -1, 1), won(1, "b", "a", -1, 1)]
    assert "| a against b | 4 | 2 | 1 | 1 | +0.250, -0.250 |" in write_markdown("t", results, rate(results))


def test_the_command_writes_the_tables_and_refuses_to_write_over_them(tmp_path: Path) -> None:
    call = ["tournament", "oracle", "random", "--env", NIM_ID, "--games", "2", "--out", str(tmp_path / "out")]
    assert "| oracle |" in invoke(*call).out
    data = json.loads((tmp_path / "out" / "table.json").read_text())
    assert (data["games"], data["ratings"][0]["name"]) == (4, "oracle")
    invoke(*call[:-1], tmp_path / "new", "--resume")
    assert "--resume" in invoke(*call, status=2).err
    invoke(*call, "--resume")


@pytest.mark.parametrize(("second", "message"), [("random", "one=random other=random"), ("rndom", "Nearest: random")])
def test_bad_input_begins_nothing(tmp_path: Path, second: str, message: str) -> None:
    stderr = invoke("tournament", "random", second, "--env", NIM_ID, "--out", tmp_path / "out", status=2).err
    assert message in stderr
    assert stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_two_servers_of_one_model_play_each_other(tmp_path: Path) -> None:
    with FaultServer() as one, FaultServer() as other:
        names = [f"openai:m@{url}" for url in (one.url.replace("://", "://me:hunter2@"), other.url)]
        call = ["tournament", names[0], f"hot={names[1]}", "--env", NIM_ID, "--games", "1", "--out", tmp_path / "out"]
        stderr = invoke(*call, "--policy-arg", "extra.top_k=3", "--policy-arg", "hot.temperature=2").err
        assert f"asking {one.url} ..." in stderr
        assert all(server.requests[1].body["top_k"] == 3 for server in (one, other))
        assert [server.requests[1].body.get("temperature") for server in (one, other)] == [None, 2]
    ratings = json.loads((tmp_path / "out" / "table.json").read_text())["ratings"]
    assert {each["name"] for each in ratings} == {f"openai:m@{one.url}", "hot"}
    header = json.loads((tmp_path / "out" / RECORDS / "run.json").read_text())
    assert header["policies"][f"openai:m@{one.url}"]["options"] == {"top_k": 3}
    assert not any(b"hunter2" in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_at_three_seats_each_holds_each_seat_once_and_one_alone_holds_all(tmp_path: Path) -> None:
    assert set(list_seatings(["a", "b"], 3)) == {tuple(each) for each in ("abb", "bab", "bba", "baa", "aba", "aab")}
    two = {"random": RandomPolicy(), "oracle": OraclePolicy(fallback=True)}
    results = Tournament(MEET_ID, two, 2, tmp_path / "two").play()
    assert len(results) == 12
    assert {each.name for each in rate(results)} == set(two)
    alone = Tournament(MEET_ID, {"random": RandomPolicy()}, 2, tmp_path / "alone").play()
    assert [each.players for each in alone] == [("random",) * 3] * 2
    assert "| random | 2 |" in write_markdown("t", alone, rate(alone))
    assert len(list(read_trajectories(tmp_path / "alone" / RECORDS))) == 6


def test_a_policy_is_asked_once_a_round_for_all_its_seats_at_all_tables(tmp_path: Path) -> None:
    sizes: list[int] = []

    class Counting(RandomPolicy):
        def reply(self, turns: Sequence[Turn]) -> list[Reply]:
            sizes.append(len(turns))
            return super().reply(turns)

    Tournament(MEET_ID, {"counting": Counting()}, 5, tmp_path).play()
    assert sizes[0] == 15


def test_policies_that_are_asked_apart_answer_at_the_same_time(tmp_path: Path) -> None:
    both = Barrier(8)  # at 8 tables the first mover of each game

    class Slow(RandomPolicy):
        def __init__(self, name: str, pool: ThreadPoolExecutor) -> None:
            self.name, self.pool = name, pool

        def submit(self, turn: Turn) -> Future[Reply]:
            def answer() -> Reply:
                if turn.turn == 0 and turn.env.table.turns == [0, 0]:
                    both.wait(timeout=20)
                return self.reply([turn])[0]

            return self.pool.submit(answer)

    with ThreadPoolExecutor(16) as pool:
        results = Tournament(NIM_ID, {name: Slow(name, pool) for name in "ab"}, 4, tmp_path).play()
    assert len(results) == 8
    assert not both.broken
