"""The certificate of a game and of a question about one; of a game where all move at once, what differs."""

from vlgym.testing import GAME_CHECKS, EnvConformance, GameConformance


class TestGame(GameConformance):
    """Moves in turn, with hidden cards."""

    env_id = "vlgym/KuhnPoker-v0"


class TestGameAtOnce(GameConformance):
    env_id = "vlgym/CoinGame-v0"
    checks = ("recorded", "state", *GAME_CHECKS)


class TestQuestion(EnvConformance):
    """A question about a game is an environment for one."""

    env_id = "vlgym/NextMove-v0"
