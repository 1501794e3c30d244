"""The plugin's cards: specs only. Importing this module imports no environment code."""

from __future__ import annotations

from vlgym.hookspecs import hookimpl
from vlgym.spec import EnvSpec

_RL4VLM = (
    "Zhai et al., Fine-Tuning Large Vision-Language Models as Decision-Making Agents via Reinforcement Learning, "
    "NeurIPS 2024"
)
_VLDAC = "VL-DAC, arXiv 2508.04280"

NUMBER_LINE = EnvSpec(
    id="vlgym/NumberLine-v0",
    entry_point="vlgym_cards.number_line:NumberLine",
    summary="Read a target and a current number in the picture and walk from one to the other.",
    family="cards",
    max_turns=10,
    reward_range=(-1.0, 1.0),
    success_rule="return > 0: the target is reached without a wrong move",
    skills=("reading", "counting"),
    difficulty="easy",
    image_size=(300, 300),
    random_success_below=0.5,
    references=(_RL4VLM, _VLDAC),
)

EZ_POINTS = EnvSpec(
    id="vlgym/EZPoints-v0",
    entry_point="vlgym_cards.ez_points:EZPoints",
    summary="Write a formula worth 12 from two cards, one symbol a turn.",
    family="cards",
    max_turns=7,
    reward_range=(-1.0, 10.0),
    success_rule="a formula that uses both cards once and equals 12 is finished with =",
    skills=("reading", "arithmetic", "planning"),
    difficulty="medium",
    image_size=(300, 300),
    random_success_below=0.1,
    references=(_RL4VLM, _VLDAC),
)

POINTS_24 = EnvSpec(
    id="vlgym/Points24-v0",
    entry_point="vlgym_cards.points24:Points24",
    summary="Write a formula worth 24 from four cards, one symbol a turn.",
    family="cards",
    max_turns=22,
    reward_range=(-1.0, 10.0),
    success_rule="a formula that uses all four cards once and equals 24 is finished with =",
    skills=("reading", "arithmetic", "planning"),
    difficulty="hard",
    image_size=(300, 300),
    oracle_success=0.6,  # 73.1 % of the published hands are solvable; the rest is sampling error of a short test
    random_success_below=0.1,
    references=(_RL4VLM,),
)

BLACKJACK = EnvSpec(
    id="vlgym/Blackjack-v0",
    entry_point="vlgym_cards.blackjack:Blackjack",
    summary="Read the cards on the table; hit or stand to beat the dealer.",
    family="cards",
    max_turns=20,
    reward_range=(-1.0, 1.0),
    success_rule="the hand is won",
    skills=("reading", "arithmetic", "chance"),
    difficulty="medium",
    image_size=(300, 300),
    oracle_success=0.25,  # the best policy wins 43.2 % of hands; the rest is sampling error of a short test
    random_success_below=0.5,  # random play wins 28.1 %
    references=(_RL4VLM, "Sutton and Barto, Reinforcement Learning, 2nd edition, example 5.1"),
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    """Return the family's specs."""
    return [NUMBER_LINE, EZ_POINTS, POINTS_24, BLACKJACK]
