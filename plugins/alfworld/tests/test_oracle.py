"""The oracle wins every generated game, also after arbitrary commands, and only ever gives admissible ones."""

import numpy as np
import pytest
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import TASKS, met_conditions
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.oracle import advise


@pytest.fixture(scope="module")
def running():
    game = TextGame()
    yield game
    game.close()


@pytest.mark.parametrize(
    ("games", "disturbance"), [(12, 15), *(pytest.param(100, n, marks=pytest.mark.exhaustive) for n in (0, 15))]
)
def test_the_oracle_wins_all_games_of_the_six_types(running: TextGame, games: int, disturbance: int):
    lengths = []
    for seed in range(games):
        rng = np.random.default_rng(10_000 + seed)
        game = draw_game(rng, TASKS[seed % 6], seen=seed % 3 > 0)
        running.open(game)
        for _ in range(disturbance):
            if not running.won:
                running.command(running.commands[int(rng.integers(len(running.commands)))])
        for length in range(20):
            assert running.won == all(met_conditions(game.goal, running.world)), game.name
            if running.won:
                lengths.append(length)
                break
            advice = advise(game.goal, running.world, running.commands)
            assert advice is not None, game.name
            assert advice.command in running.commands
            running.command(advice.command)
    assert len(lengths) == games
    assert np.mean(lengths) < 8
