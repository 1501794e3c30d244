"""The planted faults by the check that has to name each, and those that no check sees."""

from __future__ import annotations

from typing import Any

from faults import planted_play
from faults.lantern import lantern_spec

from vlgym.env.spec import EnvSpec

FAULTS = {
    "picture": (
        "PictureIsConstant PictureIsFrozen PictureFreezesLater PictureIgnoresTheSeed PictureLags PictureIgnoresItsSize"
    ),
    "gymnasium": "PictureOfFloats",
    "described": "WordsTellTheSteps",
    "render": "RenderUnlike RenderIsLate",
    "looking": "DrawingMoves DrawingDraws ListIsShuffled",
    "leak": "TextTellsTheAnswer TaskTellsTheAnswer ListTellsTheAnswer ListEndsWithTheAnswer",
    "conduct": (
        "OracleMovesTheGoal OracleMovesTheWalker OracleDraws OracleActsOutside OracleNamesNothing OracleCounts "
        "ThoughtsMove ThoughtsVary"
    ),
    "oracle": "OracleLoses TestUnsolvable",
    "endings": "TruncatesEarly BothFlags",
    "turn_limit": "EndsTooLate GoesOnAfterTheEnd GivesUp",
    "floor": "TestTrivial AnyFirstStepWins",
    "splits": "TestHasOneStart SplitsMix",
    "rewards": "TestPaysMore OutOfRange PaysNaN",
    "state": (
        "StateForgetsInfo StateForgetsAfterSixteen StateForgetsTheGoal StateIsNoJson StateKeepsThePicture "
        "StateForgetsTheChance"
    ),
    "copies": "CopyForgetsTheDraws",
    "history": "PaysLessAfterTwentyFive TiresAsAClass",
    "determinism": (
        "RemembersTheEpisodeBefore NumbersItsInstances ChanceFromTurnEleven PictureNoiseFromTurnEleven SeedIsIgnored"
    ),
    "processes": "TellsTheDate TellsTheHour PaysByTheClock TellsTheUser DependsOnHashes",
    "vector": "SharesItsWalker",
    "values": "RewardIsNumpy FlagIsNumpy InfoIsNoJson InfoHoldsAnArray InfoIsInfinite ListIsDoubled ListIsEmpty",
    "fresh": "InfoIsSharedFromTurnThree ImageIsShared",
    "garbage": "AcceptsAnything AcceptsBeginnings UnreadableMoves LongRepliesRaise",
    "words": "MagicWord MagicReply MagicAction FlatteryPays",
    "parsers": "ParserShortens",
    "parser_time": "ParserIsSlow",
    "resources": "MemoryGrows TrailGrows FilesStayOpen ThreadsStay ProcessesStay CloseTwiceRaises",
    "side_effects": (
        "WritesAFile LeavesATemporaryFile ChangesTheFolder ChangesTheVariables ChangesThePath AsksTheNetwork "
        "Prints DrawsFromRandom DrawsFromNumpy"
    ),
}
"""Check -> classes of `planted_play` and `planted_sight`."""
UNSEEN = {
    "TextTellsThePlaces": "which part of the state belongs to the picture alone is known to the author only",
    "MagicIsComputed": "no such reply stands in the source, and one in 9,973 replies is one",
}
"""Faults that no check sees, and why."""
STYLES = {
    "ParserShortens": "faults.planted_sight:LastTagParser",
    "ParserIsSlow": "faults.planted_sight:TrimmingParser",
}


def make_fault_spec(name: str) -> EnvSpec:
    """Return the card of a fault's class."""
    module = "faults.planted_play" if hasattr(planted_play, name) else "faults.planted_sight"
    changes: dict[str, Any] = {"reply_styles": (STYLES[name],)} if name in STYLES else {}
    return lantern_spec(name, module, **changes)
