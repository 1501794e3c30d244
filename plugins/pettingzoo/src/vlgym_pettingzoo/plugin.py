"""The plugin's cards: specs only. Importing this module imports no environment code.

Drawings, texts and players are this package's where a card does not name others'.
"""

from __future__ import annotations

from typing import Any

from vlgym import EnvSpec, hookimpl
from vlgym.registry.suites import SuitePart

OPEN_SPIEL = "Lanctot et al., OpenSpiel: A Framework for Reinforcement Learning in Games, arXiv 1908.09453"
XU = "Xu et al., VS-Bench: Evaluating VLMs for Strategic Abilities in Multi-Agent Environments, arXiv 2506.02387"
MPE = "Lowe et al., Multi-Agent Actor-Critic for Mixed Cooperative-Competitive Environments, NeurIPS 2017"
TERRY = "Terry et al., PettingZoo: Gym for Multi-Agent Reinforcement Learning, NeurIPS 2021"


def _card(name: str, module: str, summary: str, **fields: Any) -> EnvSpec:
    defaults = {"image_size": (384, 384), "reward_range": (-1.0, 1.0), "references": (OPEN_SPIEL,)}
    return EnvSpec(
        id=f"vlgym/{name}-v0", entry_point=f"vlgym_pettingzoo.{module}:{name}", summary=summary,
        family="pettingzoo", **{**defaults, **fields},
    )  # fmt: skip


def _game(
    name: str, module: str, summary: str, skills: tuple[str, ...], opponents: str = "oracle", **fields: Any
) -> EnvSpec:
    """Return the card of a game of several agents, by default with a planner as oracle."""
    defaults = {"oracle": "planner", "kwargs": {"opponents": opponents}}
    return _card(name, module, summary, skills=("several agents", *skills), **{**defaults, **fields})


BOARD = ("reading", "planning")
TIC_TAC_TOE = _game(
    "TicTacToe", "board_games", "Put three marks in a row before the other player does.", BOARD,
    max_turns=9, success_rule="this seat has three in a row", oracle="exact", kwargs={},
    oracle_success=0.85, random_success_below=0.7, prompt_version=2,
)  # fmt: skip
CONNECT_FOUR = _game(
    "ConnectFour", "board_games", "Drop discs into a rack; four in a row win.", BOARD, "search",
    max_turns=42, success_rule="this seat has four in a row", difficulty="medium",
    oracle_success=0.65, random_success_below=0.8,
    levels=tuple(f"an opponent that tries {count} games before a move" for count in (2, 10, 25, 50, 200)),
)  # fmt: skip
BREAKTHROUGH = _game(
    "Breakthrough", "board_games", "Bring one piece across a board of 6 x 6 squares.", BOARD, "search",
    max_turns=60, success_rule="this seat has reached the last row or captured all pieces",
    difficulty="hard", oracle_success=0.95, random_success_below=0.8, prompt_version=2,
    levels=tuple(
        f"a board of {side} x {side} squares, an opponent that tries {count} games before a move"
        for side, count in ((5, 5), (6, 20), (6, 100), (7, 100), (8, 100))
    ),
)  # fmt: skip
CHESS = _game(
    "ChessEndings", "chess_endings", "Win a chess ending with few men against Stockfish.", BOARD,
    max_turns=60, success_rule="this seat has mated the other king", difficulty="hard",
    kwargs={"seat": 0, "opponents": "stockfish-2"}, oracle_success=0.8, random_success_below=0.1,
    figure_episodes=100, system_requirements=("stockfish",), prompt_version=2,
    references=("The Stockfish developers, Stockfish", "Fiekas, python-chess"),
)  # fmt: skip
BATTLESHIP = _game(
    "Battleship", "board_games", "Find and sink three hidden ships before yours are sunk.",
    (*BOARD, "hidden information"), "search", max_turns=20, reward_range=(-3.0, 3.0),
    success_rule="this seat has sunk more ships than it lost", difficulty="medium", oracle_success=0.25,
    random_success_below=0.3,
)  # fmt: skip

POKER: dict[str, Any] = {
    "skills": ("reading", "chance", "hidden information"), "max_turns": 20, "oracle_success": 0.25,
    "success_rule": "this seat has won chips when the match is over", "random_success_below": 0.6,
    "blind": ("vlgym_pettingzoo.poker:Bold",),
}  # fmt: skip
KUHN_POKER = _game(
    "KuhnPoker", "poker", "Ten hands of poker with three cards and one bet.", reward_range=(-2.0, 2.0), **POKER
)
LEDUC_HOLDEM = _game(
    "LeducHoldem", "poker", "Five hands of hold'em with six cards and two rounds of bets.",
    reward_range=(-13.0, 13.0), difficulty="medium", **POKER,
)  # fmt: skip
HANABI = _game(
    "Hanabi", "hanabi", "Build fireworks together with cards that only the other player sees.",
    ("reading", "cooperation", "hidden information"), max_turns=60, reward_range=(-24.0, 9.0),
    success_rule="the game is over with at least 14 of 25 points", difficulty="hard",
    oracle_success=0.75, random_success_below=0.05,
)  # fmt: skip

TEAM = ("reading", "navigation", "cooperation")
KITCHEN = _game(
    "KitchenPair", "kitchen", "Two cooks make onion soup together.", TEAM, image_size=(448, 448),
    max_turns=80, reward_range=(0.0, 2.0), success_rule="the two cooks have served at least 2 soups",
    difficulty="hard", oracle_success=0.9, random_success_below=0.5,
    references=("Carroll et al., On the Utility of Learning about Humans for Human-AI Coordination, NeurIPS 2019",),
)  # fmt: skip
COINS = _game(
    "CoinGame", "walkers", "Collect coins of your colour, and leave the other player's alone.",
    ("reading", "cooperation"), max_turns=24, reward_range=(-2.0, 1.0),
    success_rule="the two have earned at least 4 together, and neither has lost",
    oracle_success=0.9, random_success_below=0.5,
    references=("Lerer and Peysakhovich, Maintaining cooperation in complex social dilemmas, arXiv 1707.01068",),
)  # fmt: skip
HUNT = _game(
    "MonsterHunt", "walkers", "Eat apples alone, or defeat a monster together.", TEAM,
    max_turns=50, reward_range=(-2.0, 7.0), success_rule="the two have earned at least 60 together",
    oracle_success=0.9, random_success_below=0.2, figure_episodes=100, references=(XU,),
)  # fmt: skip
BATTLE = _game(
    "BattleOfTheColors", "walkers", "Meet on a block; the one of your colour pays you more.", TEAM,
    max_turns=50, reward_range=(0.0, 2.0), success_rule="the two have earned at least 30 together",
    oracle_success=0.9, random_success_below=0.2, figure_episodes=100, references=(XU,),
)  # fmt: skip
MPE_SPREAD = _game(
    "MPESpread", "mpe", "Three agents share out three landmarks, and glide onto them.", TEAM, image_size=(448, 448),
    max_turns=25, reward_range=(-20.0, 0.0), success_rule="all three landmarks are covered",
    difficulty="medium", oracle_success=0.9, random_success_below=0.5, references=(MPE,),
)  # fmt: skip
MPE_TAG = _game(
    "MPETag", "mpe", "Two chasers catch one runner, who is faster.", TEAM, image_size=(448, 448),
    max_turns=25, reward_range=(-8.0, 2.0),
    success_rule="a chaser: the runner was touched or has left the field; the runner: neither, to the last turn",
    difficulty="hard", oracle_success=0.35, random_success_below=0.45, references=(MPE,),
)  # fmt: skip
KNIGHTS = _game(
    "KnightsArchersZombies", "knights", "An archer and a knight keep zombies from a line, in real time.", TEAM,
    image_size=(448, 448), max_turns=60, reward_range=(0.0, 50.0), difficulty="hard", references=(TERRY,),
    success_rule="the line has held for 60 turns", oracle_success=0.6, random_success_below=0.5,
    truncates_early=True, figure_episodes=100,
)  # fmt: skip
PONG = _game(
    "Pong", "pong", "First to three points in the Atari game, paddle against paddle.",
    ("reading", "control", "prediction"), "search", max_turns=100, difficulty="hard",
    success_rule="this seat has more points when the game is over",
    oracle_success=0.6, random_success_below=0.2, figure_episodes=100,
    references=(
        TERRY, "Terry and Black, Multiplayer Support for the Arcade Learning Environment, arXiv 2009.09341", XU,
    ),
)  # fmt: skip

QUESTION = {
    "max_turns": 1, "reward_range": (0.0, 1.0), "kwargs": {"invalid_action": "terminate"},
    "references": ("Xu et al., VS-Bench, arXiv 2506.02387", OPEN_SPIEL),
}  # fmt: skip
NEXT_MOVE = _card(
    "NextMove", "questions", "Say what another player does next.",
    success_rule="the right move is predicted", skills=("reading", "other players"),
    difficulty="hard", random_success_below=0.25, **QUESTION,
)  # fmt: skip
NAME_ELEMENT = _card(
    "NameElement", "questions", "Name one element of a game's picture.",
    success_rule="the right answer is given", skills=("reading",),
    random_success_below=0.35, **QUESTION,
)  # fmt: skip

# Games of VS-Bench (Xu et al., arXiv 2506.02387), each with our rules, drawing and players.
VS_BENCH = (HANABI, KITCHEN, KNIGHTS, BREAKTHROUGH, KUHN_POKER, COINS, HUNT, BATTLE, MPE_TAG, PONG)

# Cooperative and mixed-motive games, in which one model holds all seats (`opponents="self"`): mean
# returns of random play and of the oracle in all seats, over 100 episodes.
TOGETHER = {
    HANABI.id: (0.0, 17.42),
    KITCHEN.id: (0.0, 2.62),
    KNIGHTS.id: (1.51, 12.85),
    COINS.id: (0.03, 4.445),
    HUNT.id: (-10.98, 144.68),
    BATTLE.id: (0.225, 28.935),
}
AGAINST = (BREAKTHROUGH, KUHN_POKER, PONG, MPE_TAG)  # the card's opponents, from both sides


@hookimpl
def vlgym_suites() -> list[SuitePart]:
    """Return the suite `vs-bench`: games of VS-Bench, and questions about each."""
    # As VS-Bench plays these: ten times, and Breakthrough ten times from each side (appendix F).
    itself, items = ({"opponents": "self"},), tuple({"game": spec.id} for spec in VS_BENCH)
    together = [SuitePart("vs-bench", name, itself, episodes=10, bounds=pair) for name, pair in TOGETHER.items()]
    against = [SuitePart("vs-bench", spec.id, ({},), episodes=20) for spec in AGAINST]
    cards = NEXT_MOVE, NAME_ELEMENT
    questions = [SuitePart("vs-bench", spec.id, items, episodes=40) for spec in cards]
    return [*together, *against, *questions]


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [
        TIC_TAC_TOE, CONNECT_FOUR, BREAKTHROUGH, CHESS, KUHN_POKER, LEDUC_HOLDEM, HANABI, BATTLESHIP, KITCHEN, COINS,
        HUNT, BATTLE, MPE_SPREAD, MPE_TAG, KNIGHTS, PONG, NEXT_MOVE, NAME_ELEMENT,
    ]  # fmt: skip
