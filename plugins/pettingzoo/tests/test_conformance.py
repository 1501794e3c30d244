"""The certificate of a game and of a question about one; of a game where all move at once, what differs.

A question's checks that take long are the sweep's.
"""

from vlgym.testing import CHECKS, GAME_CHECKS, EnvConformance, GameConformance

SWEPT = ("floor", "blind", "history", "parser_time", "resources")


class TestGame(GameConformance):
    """Moves in turn, with hidden cards."""

    env_id = "vlgym/KuhnPoker-v0"


class TestGameAtOnce(GameConformance):
    env_id = "vlgym/CoinGame-v0"
    checks = ("recorded", "state", *GAME_CHECKS)


class TestQuestion(EnvConformance):
    """A question about a game is an environment for one."""

    env_id = "vlgym/NextMove-v0"
    checks = tuple(name for name in CHECKS if name not in SWEPT)
