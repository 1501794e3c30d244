"""The plugin's cards: specs only. Importing this module imports no environment code."""

from dataclasses import replace
from typing import Any

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe

_RL4VLM = (
    "Zhai et al., Fine-Tuning Large Vision-Language Models as Decision-Making Agents "
    "via Reinforcement Learning, NeurIPS 2024"
)
_OLD_RULES = {"compat": "rl4vlm"}
_VLDAC = "VL-DAC, arXiv 2508.04280"


def _card(
    title: str, module: str, summary: str, max_turns: int, best: float, difficulty: str, **fields: Any
) -> EnvSpec:
    return EnvSpec(
        id=f"vlgym/{title}-v0",
        entry_point=f"vlgym_cards.{module}:{title}",
        summary=summary,
        family="cards",
        max_turns=max_turns,
        reward_range=(-1.0, best),
        difficulty=difficulty,
        image_size=(300, 300),
        pictures="exact",
        **fields,
    )


def _hand(cards: str) -> dict[str, Any]:
    return {"cards": cards.split()}


def _table(player: str, dealer: str) -> dict[str, Any]:
    return {"player": player.split(), "dealer": dealer.split()}


NUMBER_LINE = _card(
    "NumberLine", "number_line", "Read a target and a current number in the picture and walk from one to the other.",
    10, 1.0, "easy",
    success_rule="return > 0: the target is reached without a wrong move",
    skills=("reading", "counting"),
    interaction=("a step up or down", "numbers", "nothing"),
    random_success_below=0.5,
    references=(_RL4VLM, _VLDAC),
    blind=("vlgym_cards.blind:NumberLineScript",),
    probes=(
        Probe("a wrong step, then the target", ("-", "+", "+"), {"current": 2, "target": 3}),
        Probe("the lower end stops", ("-", "-", "+", "+"), {"current": 0, "target": 2}),
        Probe("the upper end stops", ("+", "+", "-"), {"current": 5, "target": 3}),
        Probe("the turn limit", ("+", "-") * 6, {"current": 3, "target": 5}),
        *(Probe("start and target fall together", ("+",), index=index) for index in (6, 17, 27, 42)),
        Probe("two digits", ("@oracle",) * 3, {"current": 7, "target": 12}, {"max_position": 12}),
        *(Probe("numbers", (), {"current": n, "target": (n + 3) % 6}) for n in range(6)),
        Probe("published", ('@raw {"action": "+"}', "@raw -", "@raw ?"), kwargs=_OLD_RULES, index=3),
    ),
)  # fmt: skip

EZ_POINTS = _card(
    "EZPoints", "ez_points", "Write a formula worth 12 from two cards, one symbol a turn.", 7, 10.0, "medium",
    success_rule="a formula that uses both cards once and equals 12 is finished with =",
    skills=("reading", "arithmetic", "planning"),
    interaction=("a symbol of a formula", "playing cards", "nothing"),
    random_success_below=0.1,
    references=(_RL4VLM, _VLDAC),
    blind=("vlgym_cards.blind:EZPointsTries",),
    probes=(
        Probe("a sum, and a sum that is not 12", ("5", "+", "7", "="), _hand("H5 S7")),
        Probe("a product", ("6", "*", "2", "="), _hand("D2 C6")),
        Probe("wrong", ("5", "*", "7", "="), _hand("H5 S7")),
        Probe("a card is left", ("10", "="), _hand("HK S2")),
        Probe("faces are ten; a number no card has", ("9", "10", "10", "+", "2", "="), _hand("HQ S2")),
        Probe("a token too many", ("+",) * 8, _hand("HJ S2")),
        Probe("an ace is one; = comes seventh", ("+", "1", "*", "10", "+", "+", "="), _hand("HA SK")),
        Probe("no sign, no joined digits", ("1", "2", "="), _hand("HA S2")),
        Probe("numbers", ("3", "4"), _hand("H3 S4")),
        Probe("numbers", ("8", "9"), _hand("D8 C9")),
        Probe("published: digits join", ("@raw 1", "@raw 2", "@raw ="), _hand("HA S2"), _OLD_RULES),
        Probe("published: 10 is not 1", ('@raw {"action": "10"}',), _hand("HK S2"), _OLD_RULES),
        Probe("published: = comes too late", ("@raw +",) * 6 + ("@raw =",), kwargs=_OLD_RULES),
    ),
)  # fmt: skip

_SIXES = _hand("H6 S6 D6 C6")
_LONGEST = (*"(((((((6+6+6+6)))))))=",)  # 21 tokens, the most, and their end

POINTS_24 = _card(
    "Points24", "points24", "Write a formula worth 24 from four cards, one symbol a turn.", 22, 10.0, "hard",
    success_rule="a formula that uses all four cards once and equals 24 is finished with =",
    skills=("reading", "arithmetic", "planning"),
    interaction=("a symbol of a formula", "playing cards", "nothing"),
    oracle_success=0.6,  # 73.1 % of the published hands are solvable; the rest is sampling error of a short test
    random_success_below=0.1,
    references=(_RL4VLM,),
    blind=("vlgym_cards.blind:Points24Tries",),
    probes=(
        Probe("the 21st token is the last before =", _LONGEST, _SIXES),
        Probe("a 22nd token", (*_LONGEST[:-1], "+"), _SIXES),
        Probe("fractions", (*"8/(3-8/3)=",), _hand("H3 S3 D8 C8")),
        Probe("products before sums", (*"2+2+4*5=",), _hand("H2 S2 D4 C5")),
        Probe("differences from the left", (*"9*4-7-5=",), _hand("H9 S4 D7 C5")),
        Probe("wrong; division by zero", (*"4/(2-2)*8=",), _hand("H4 S2 D2 C8")),
        Probe("a card is left", (*"8*3=",), _hand("H8 S3 DA CA")),
        Probe("no number runs together", (*"1", "2", *"*2*1="), _hand("HA S2 D2 CA")),
        Probe("a bracket is open", (*"(8*3*1*1=",), _hand("H8 S3 DA CA")),
        Probe("a number that no card has", ("7", "10", "7"), _hand("HJ SQ DK CA")),
        Probe("faces count on", ("13", "+", "11"), _hand("HJ SK DQ CA"), {"faces_as_ten": False}),
        Probe("solvable hands only", ("@oracle...",), kwargs={"solvable_only": True}, index=1),
        Probe("numbers", ("9", "-", "7"), _hand("H9 S7 D10 CQ")),
        Probe("published: = comes too late", tuple(f"@raw {token}" for token in _LONGEST), _SIXES, _OLD_RULES),
    ),
)  # fmt: skip

BLACKJACK = _card(
    "Blackjack", "blackjack", "Read the cards on the table; hit or stand to beat the dealer.", 20, 1.0, "medium",
    success_rule="the hand is won",
    skills=("reading", "arithmetic", "chance"),
    interaction=("a choice of two", "playing cards", "nothing"),
    oracle_success=0.25,  # the best policy wins 43.2 % of hands; the rest is sampling error of a short test
    random_success_below=0.5,  # random play wins 28.1 %
    references=(_RL4VLM, "Sutton and Barto, Reinforcement Learning, 2nd edition, example 5.1"),
    probes=(
        Probe("the dealer draws at 16", ("stand",), _table("HK SQ", "H10 S6")),
        Probe("the dealer stands at 17", ("stand",), _table("HK S8", "H10 S7")),
        Probe("the dealer stands at a soft 17", ("stand",), _table("HK S8", "HA S6")),
        Probe("a draw", ("stand",), _table("HK SQ", "HJ S10")),
        Probe("a loss", ("stand",), _table("HK S8", "HJ S10")),
        Probe("21 goes on and pays no more", ("stand",), _table("HA SK", "HJ S9")),
        Probe("a hit at 20", ("hit", "hit"), _table("HK SQ", "H2 S9"), index=1),
        Probe("soft, then hard", ("hit",) * 4, _table("HA S5", "H2 S9"), index=2),
        Probe("the dealer draws to the end", ("stand",), _table("H2 S3", "H2 S3"), index=3),
        Probe("two aces", ("hit", "stand"), _table("HA SA", "DA CA"), index=4),
        Probe("nine cards in two rows", ("stand",), _table("HA SA DA CA H2 S2 D2 C2 H3", "H4 S10")),
        Probe("ranks", (), _table("H4 S5", "D6 C3")),
        Probe("ranks", (), _table("D7 C8", "H9 S3")),
        Probe("published", ("@raw hit", '@raw {"action": "stand"}'), kwargs=_OLD_RULES, index=5),
    ),
)  # fmt: skip


NUMBER_LINE_1 = replace(
    NUMBER_LINE,
    id="vlgym/NumberLine-v1",
    summary="Read a target and a current number in the picture and walk from one to the other, twice.",
    kwargs={"targets": 2},
    max_turns=20,
    success_rule="both targets are reached without a wrong move",
    random_success_below=0.25,
    probes=(
        Probe("up, then to the second target", ("+", "@oracle..."), {"current": 2, "target": 3}),
        *(Probe("the second target", ("@oracle...",), {"current": 0, "target": 1}, index=index) for index in range(4)),
        Probe("a wrong step after the first target", ("+", "-", "+", "+", "-"), {"current": 4, "target": 5}),
        *NUMBER_LINE.probes,
    ),
    levels=(
        "numbers from 0 to 3, one target",
        "numbers from 0 to 5, one target",
        "numbers from 0 to 5, two targets",
        "numbers from 0 to 9, two targets",
        "numbers from 0 to 20, two targets",
        "numbers from 0 to 30, three targets",
    ),
)
EZ_POINTS_1 = replace(
    EZ_POINTS,
    id="vlgym/EZPoints-v1",
    kwargs={"hands": "balanced", "refusals": 2},
    probes=(
        Probe("one refusal, then right", ("9", "5", "+", "7", "="), _hand("H5 S7")),
        Probe("two refusals", ("9", "5", "8"), _hand("H5 S7")),
        *(Probe("the seven pairs", ("@oracle...",), index=index) for index in range(12)),
        *EZ_POINTS.probes,
    ),
    levels=(
        "two cards, +",
        "two cards, + and *",
        "three cards, + and *",
        "three cards, +, - and *",
        "four cards, +, - and *",
    ),
)
POINTS_24_1 = replace(
    POINTS_24,
    id="vlgym/Points24-v1",
    kwargs={"refusals": 2},
    probes=(Probe("two refusals", ("7", "9"), _hand("HJ SQ DK CA")), *POINTS_24.probes),
    levels=(
        "three cards, no brackets and no /",
        "three cards",
        "four cards, no brackets and no /",
        "four cards, solvable hands only",
        "four cards; J, Q and K count 11, 12 and 13",
        "five cards; J, Q and K count 11, 12 and 13",
    ),
)

# Scores of the newer versions need the picture. The older ones stay for comparison with the papers.
_OLD = tuple(
    replace(old, replaced_by=new.id)
    for old, new in ((NUMBER_LINE, NUMBER_LINE_1), (EZ_POINTS, EZ_POINTS_1), (POINTS_24, POINTS_24_1))
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [*_OLD, BLACKJACK, NUMBER_LINE_1, EZ_POINTS_1, POINTS_24_1]
