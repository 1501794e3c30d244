"""The planted faults by the check that has to name each, and those that no check sees."""

from faults import planted_play
from faults.lantern import lantern_spec

from vlgym.env.spec import EnvSpec

FAULTS = {
    "picture": "PictureIsConstant PictureIsFrozen PictureFreezesLater PictureIgnoresTheSeed PictureLags "
    "PictureIgnoresItsSize",
    "gymnasium": "PictureOfFloats",
    "described": "WordsTellTheSteps",
    "render": "RenderUnlike RenderIsLate",
    "looking": "DrawingDraws ListIsShuffled",
    "leak": "TextTellsTheAnswer TaskTellsTheAnswer ListTellsTheAnswer",
    "conduct": "OracleMovesTheGoal OracleDraws OracleActsOutside OracleNamesNothing OracleCounts "
    "ThoughtsMove ThoughtsVary",
    "oracle": "TestUnsolvable",
    "endings": "TruncatesEarly BothFlags",
    "turn_limit": "EndsTooLate GoesOnAfterTheEnd",
    "splits": "TestHasOneStart SplitsMix",
    "rewards": "TestPaysMore PaysNaN",
    "state": "StateForgetsInfo StateForgetsAfterSixteen StateIsNoJson StateKeepsThePicture StateForgetsTheChance",
    "copies": "CopyForgetsTheDraws",
    "history": "PaysLessAfterTwentyFive TiresAsAClass",
    "determinism": "RemembersTheEpisodeBefore NumbersItsInstances ChanceFromTurnEleven",
    "processes": "TellsTheDate PaysByTheClock TellsTheUser",
    "vector": "SharesItsWalker",
    "values": "RewardIsNumpy FlagIsNumpy InfoIsNoJson InfoIsInfinite ListIsDoubled ListIsEmpty",
    "fresh": "InfoIsSharedFromTurnThree",
    "garbage": "AcceptsAnything AcceptsBeginnings UnreadableMoves",
    "words": "MagicWord MagicReply MagicAction",
    "parsers": "ParserShortens",
    "resources": "TrailGrows FilesStayOpen ThreadsStay ProcessesStay CloseTwiceRaises",
    "side_effects": "WritesAFile LeavesATemporaryFile ChangesTheFolder ChangesThePath AsksTheNetwork",
}
"""Check -> classes of `planted_play` and `planted_sight`."""
UNSEEN = {
    "TextTellsThePlaces": "which part of the state belongs to the picture alone is known to the author only",
    "MagicIsComputed": "no such reply stands in the source, and one in 9,973 replies is one",
}
"""Faults that no check sees, and why."""


def make_fault_spec(name: str) -> EnvSpec:
    """Return the card of a fault's class."""
    module = "faults.planted_play" if hasattr(planted_play, name) else "faults.planted_sight"
    shortens = {"reply_styles": ("faults.planted_sight:LastTagParser",)}
    return lantern_spec(name, module, **(shortens if name == "ParserShortens" else {}))
