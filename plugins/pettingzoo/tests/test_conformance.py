"""The certificate of every game of the family."""

from vlgym.testing import EnvConformance, GameConformance


class TestGames(GameConformance):
    """Every property of the kit, those of games of several agents included, for each id."""

    env_ids = (
        "vlgym/TicTacToe-v0", "vlgym/ConnectFour-v0", "vlgym/Breakthrough-v0",
        "vlgym/ChessEndings-v0", "vlgym/KuhnPoker-v0",
        "vlgym/LeducHoldem-v0", "vlgym/Hanabi-v0", "vlgym/Battleship-v0", "vlgym/KitchenPair-v0", "vlgym/CoinGame-v0",
        "vlgym/MPESpread-v0", "vlgym/MPETag-v0", "vlgym/KnightsArchersZombies-v0",
    )  # fmt: skip


class TestNextMove(EnvConformance):
    """A question about a game is an environment for one."""

    env_id = "vlgym/NextMove-v0"
