"""The certificate of three games (moves in turn, hidden cards, all at once) and of the questions about a game; for the
other games what may differ."""

from vlgym_pettingzoo.plugin import vlgym_envs

from vlgym.testing import VARIANT_CHECKS, EnvConformance, GameConformance

WHOLE = ("vlgym/TicTacToe-v0", "vlgym/KuhnPoker-v0", "vlgym/CoinGame-v0")
QUESTIONS = ("vlgym/NextMove-v0", "vlgym/NameElement-v0")


class TestGames(GameConformance):
    env_ids = WHOLE


class TestOtherGames(GameConformance):
    env_ids = tuple(spec.id for spec in vlgym_envs() if spec.id not in (*WHOLE, *QUESTIONS))
    checks = (*VARIANT_CHECKS, "hidden")


class TestQuestions(EnvConformance):
    """A question about a game is an environment for one."""

    env_ids = QUESTIONS
