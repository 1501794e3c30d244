"""The planted faults by the check that has to name each; test_checks.py has one or more of each check."""

from faults import planted_play, planted_sight
from faults.lantern import lantern_spec

from vlgym.env.spec import EnvSpec

FAULTS = {
    "picture": "PictureIsConstant PictureIsFrozen PictureFreezesLater PictureLags PictureIgnoresItsSize",
    "render": "RenderUnlike",
    "looking": "DrawingDraws ListIsShuffled",
    "leak": "TextTellsTheAnswer ListTellsTheAnswer",
    "conduct": "OracleDraws OracleActsOutside OracleNamesNothing OracleCounts ThoughtsMove ThoughtsVary",
    "endings": "TruncatesEarly BothFlags",
    "turn_limit": "EndsTooLate GoesOnAfterTheEnd",
    "splits": "TestHasOneStart",
    "rewards": "PaysNaN",
    "state": "StateForgetsInfo StateIsNoJson StateForgetsTheChance",
    "history": "PaysLessAfterTwentyFive",
    "determinism": "NumbersItsInstances ChanceFromTurnEleven",
    "processes": "TellsTheDate PaysByTheClock TellsTheUser",
    "vector": "SharesItsWalker",
    "values": "RewardIsNumpy InfoIsNoJson InfoIsInfinite ListIsDoubled ListIsEmpty",
    "garbage": "AcceptsAnything AcceptsBeginnings UnreadableMoves",
    "words": "MagicWord MagicAction",
    "resources": "TrailGrows FilesStayOpen ThreadsStay ProcessesStay CloseTwiceRaises",
    "side_effects": "WritesAFile LeavesATemporaryFile ChangesTheFolder ChangesThePath AsksTheNetwork",
}
"""Check -> classes of `planted_play` and `planted_sight`."""


def make_fault_spec(name: str) -> EnvSpec:
    """Return the card of a fault's class."""
    module = next(module for module in (planted_play, planted_sight) if hasattr(module, name))
    return lantern_spec(name, module.__name__)
