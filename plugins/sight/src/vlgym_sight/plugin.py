"""The plugin's specs and its parts of the suite `can-it-see`. It imports no environment code."""

from typing import Any

from vlgym import EnvSpec, hookimpl
from vlgym.registry.suites import SuitePart

SUITE = "can-it-see"
EPISODES = 12  # questions of each probe in the suite
_FOUR_TURNS: dict[str, Any] = {"max_turns": 4, "history_turns": 3, "history_images": 4}


def _probe(title: str, place: str, summary: str, skills: tuple[str, ...], answers: int, **more: Any) -> EnvSpec:
    """Return a card; `place` is a module with a class of this title, or `module:Class`."""
    chance, remembered = 1 / answers, "earlier pictures" if "memory" in skills else "nothing"
    deviation = (chance * (1 - chance) / 60) ** 0.5  # of 60 short episodes
    seen = ", ".join(skill for skill in skills if skill != "memory")
    return EnvSpec(
        id=f"vlgym/{title}-v0",
        entry_point=f"vlgym_sight.{place}" if ":" in place else f"vlgym_sight.{place}:{title}",
        summary=summary,
        family="sight",
        pictures="exact",
        reward_range=(0.0, 1.0),
        success_rule="the right answer is given",
        skills=skills,
        interaction=("one answer from a list", seen, remembered),
        random_success_below=round(chance + 5 * deviation, 2),
        references=("vlgym's own",),
        **{"max_turns": 1, **more},
    )


SEE_DIGIT = _probe(
    "SeeDigit", "letters", "Say which digit the picture shows.", ("reading",), 10,
    levels=(
        "four digits, 123 pixels or more",
        "ten digits, 123 pixels or more",
        "ten digits, 34 pixels or more, anywhere",
        "numbers of two digits, 34 pixels or more",
        "numbers of two digits, 20 pixels or more, 0.35 of the contrast",
    ),
)  # fmt: skip
SEE_COLOUR = _probe("SeeColour", "colours", "Say what colour the shape has.", ("colours",), 8)
SEE_SIDE = _probe("SeeSide", "places", "Say in which half of the picture the shape is.", ("places",), 2)
SEE_COUNT = _probe(
    "SeeCount", "places", "Say how many discs there are, one to six.", ("counting",), 6,
    levels=(
        "one to three discs of 36 pixels",
        "one to six discs of 36 pixels",
        "one to nine discs of 36 pixels",
        "one to twelve discs of 27 pixels, half of the contrast",
        "one to sixteen discs of 22 pixels, 0.35 of the contrast",
    ),
)  # fmt: skip
SEE_TEXT = _probe(
    "SeeText", "letters", "Say which word there is, in letters of three sizes.", ("reading",), 12,
    levels=(
        "four words, 45 pixels",
        "eight words, 25 pixels",
        "twelve words, 14 pixels",
        "twelve words, 14 pixels, 0.35 of the contrast",
        "sixteen words that look alike, 14 pixels, 0.35 of the contrast",
    ),
)  # fmt: skip
SEE_CARD = _probe("SeeCard", "letters", "Say which playing card the picture shows.", ("reading",), 52)
SEE_CELL = _probe(
    "SeeCell", "places", "Say which cell of a labelled grid holds the mark.", ("places", "reading"), 9,
    levels=(
        "2 x 2 cells",
        "3 x 3 cells",
        "5 x 5 cells",
        "6 x 6 cells",
        "7 x 7 cells, labels of 15 pixels, the mark with 0.35 of the contrast",
    ),
)  # fmt: skip
SEE_HISTORY = _probe(
    "SeeHistory", "colours",
    "Look at four pictures, one a turn, and say what colour the first, second, third or last one has.",
    ("colours", "memory"), 8, kwargs={"invalid_action": "terminate"}, **_FOUR_TURNS,
)  # fmt: skip
PROBES = (SEE_DIGIT, SEE_COLOUR, SEE_SIDE, SEE_COUNT, SEE_TEXT, SEE_CARD, SEE_CELL, SEE_HISTORY)

CANARIES = (
    _probe(
        "CanaryColour", "canary:Canary", "Say what colour the one picture shows.", ("colours",), 8,
        kwargs={"shows": "colour", "invalid_action": "terminate"},
    ),
    _probe(
        "CanaryDigit", "canary:Canary",
        "Look at three pictures, one a turn, and say which digit the last one shows.",
        ("reading",), 10, max_turns=3,
        kwargs={"shows": "digit", "pictures": 3, "asked": 3, "invalid_action": "terminate"},
    ),
    _probe(
        "CanaryMemory", "canary:Canary",
        "Look at four pictures, one a turn, and say which word the third one shows.",
        ("reading", "memory"), 12, **_FOUR_TURNS,
        kwargs={"shows": "word", "pictures": 4, "asked": 3, "invalid_action": "terminate"},
    ),
)  # fmt: skip
"""Tests of the way to a model: chance is 1/8, 1/10 and 1/12."""


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [*PROBES, *CANARIES]


@hookimpl
def vlgym_suites() -> list[SuitePart]:
    """Return every probe, each with the same number of questions."""
    return [SuitePart(suite=SUITE, env_id=spec.id, items=({},), episodes=EPISODES) for spec in PROBES]
