"""Table of the planted faults and the check that names each; the test and the page are made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from faults.lantern import lantern_spec

from vlgym.env.spec import EnvSpec


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        name: class in `planted_play` or `planted_sight`.
        what: what is wrong, in words.
        check: the check that has to name it; `None` where it is known that none does.
        changes: fields of its spec.
        why: why no check sees it.
    """

    name: str
    what: str
    check: str | None
    changes: dict[str, Any] = field(default_factory=dict)
    why: str = ""

    def spec(self) -> EnvSpec:
        """Its card."""
        from faults import planted_play

        module = "faults.planted_play" if hasattr(planted_play, self.name) else "faults.planted_sight"
        return lantern_spec(self.name, module, **self.changes)


FAULTS = (
    Fault("PictureIsConstant", "the picture is constant", "picture"),
    Fault("PictureIsFrozen", "the picture is frozen at the start", "picture"),
    Fault("PictureFreezesLater", "the picture is frozen from turn 9", "picture"),
    Fault("PictureIgnoresTheSeed", "the picture is the same for every seed", "picture"),
    Fault("PictureLags", "the picture is one step behind", "picture"),
    Fault("PictureIgnoresItsSize", "`image_size` is ignored", "picture"),
    Fault("PictureOfFloats", "the picture holds floating-point numbers", "gymnasium"),
    Fault("WordsTellTheSteps", "the words of the picture tell the steps, which it does not show", "described"),
    Fault("RenderUnlike", "`render()` draws darker", "render"),
    Fault("RenderIsLate", "`render()` shows the moment before", "render"),
    Fault("DrawingMoves", "each drawing is a little different", "looking"),
    Fault("DrawingDraws", "drawing draws from the episode's generator", "looking"),
    Fault("ListIsShuffled", "the legal actions stand in another order each time", "looking"),
    Fault("TextTellsTheAnswer", "the text names the right action", "leak"),
    Fault("TaskTellsTheAnswer", "task and text name the right action", "leak"),
    Fault("ListTellsTheAnswer", "the right action stands first in the list", "leak"),
    Fault("ListEndsWithTheAnswer", "the right action stands last in the list", "leak"),
    Fault(
        "TextTellsThePlaces", "the text tells both places in numbers", None,
        why="a text may tell the state; which part of it belongs to the picture alone is known to the author only",
    ),
    Fault("OracleMovesTheGoal", "the oracle moves the goal", "conduct"),
    Fault("OracleMovesTheWalker", "the oracle moves the player", "conduct"),
    Fault("OracleDraws", "the oracle draws from the episode's generator", "conduct"),
    Fault("OracleActsOutside", "the oracle plays an action that is not listed", "conduct"),
    Fault("OracleNamesNothing", "the oracle's action does not exist", "conduct"),
    Fault("OracleCounts", "the oracle says something else when it is asked again", "conduct"),
    Fault("ThoughtsMove", "writing the oracle's thoughts changes the state", "conduct"),
    Fault("ThoughtsVary", "the oracle's thoughts differ when they are asked for again", "conduct"),
    Fault("OracleLoses", "the oracle loses where the lantern is in the last row", "oracle"),
    Fault("TruncatesEarly", "legal play is truncated at turn 15", "endings"),
    Fault("BothFlags", "`terminated` and `truncated` are both set", "endings"),
    Fault("EndsTooLate", "the turn limit is two turns late", "turn_limit"),
    Fault("GoesOnAfterTheEnd", "`step` goes on after the end", "turn_limit"),
    Fault("GivesUp", "ten unreadable replies in a row terminate", "turn_limit"),
    Fault("TestUnsolvable", "the test split cannot be solved", "oracle"),
    Fault("TestTrivial", "any step wins on the test split", "floor"),
    Fault("TestHasOneStart", "every test episode begins in the same state", "splits"),
    Fault("TestPaysMore", "rewards are doubled on the test split", "rewards"),
    Fault("SplitsMix", "20 bits of the seed are used", "splits"),
    Fault("StateForgetsInfo", "a restored state forgets a value that only info shows", "state"),
    Fault("StateForgetsAfterSixteen", "a state forgets the goal after turn 16", "state"),
    Fault("StateForgetsTheGoal", "a restored state forgets the goal", "state"),
    Fault("StateIsNoJson", "the state holds a set", "state"),
    Fault("StateKeepsThePicture", "a restored state shows the picture before", "state"),
    Fault("StateForgetsTheChance", "a restored state forgets a generator", "state"),
    Fault("CopyForgetsTheDraws", "a copy samples other replies", "copies"),
    Fault("PaysLessAfterTwentyFive", "rewards are halved after 25 episodes", "history"),
    Fault("TiresAsAClass", "texts change after 30 episodes of the class", "history"),
    Fault("RemembersTheEpisodeBefore", "info tells of the episode before", "determinism"),
    Fault("NumbersItsInstances", "the text numbers the instances", "determinism"),
    Fault("ChanceFromTurnEleven", "info is random from turn 11", "determinism"),
    Fault("PictureNoiseFromTurnEleven", "a pixel is random from turn 11", "determinism"),
    Fault("SeedIsIgnored", "every seed begins in the same state", "determinism"),
    Fault("TellsTheDate", "the text tells the date", "processes"),
    Fault("TellsTheHour", "the text tells the hour", "processes"),
    Fault("PaysByTheClock", "the reward depends on the year", "processes"),
    Fault("TellsTheUser", "the text tells the user's name", "processes"),
    Fault("DependsOnHashes", "the text depends on the order of a set", "processes"),
    Fault("SharesItsWalker", "all instances share a counter", "vector"),
    Fault("OutOfRange", "a quick win pays more than the spec says", "rewards"),
    Fault("PaysNaN", "success pays NaN", "rewards"),
    Fault("AnyFirstStepWins", "any first step wins", "floor"),
    Fault("RewardIsNumpy", "rewards are numpy scalars", "values"),
    Fault("FlagIsNumpy", "`terminated` is a numpy scalar", "values"),
    Fault("InfoIsNoJson", "info holds a set", "values"),
    Fault("InfoHoldsAnArray", "info holds an array", "values"),
    Fault("InfoIsInfinite", "info holds an infinity from turn 3", "values"),
    Fault("ListIsDoubled", "a legal action is listed twice from turn 5", "values"),
    Fault("ListIsEmpty", "there is no legal action at turn 7", "values"),
    Fault("InfoIsSharedFromTurnThree", "infos share a list from turn 3", "fresh"),
    Fault("ImageIsShared", "all observations are the same array", "fresh"),
    Fault("AcceptsAnything", "`match_action` accepts anything", "garbage"),
    Fault("AcceptsBeginnings", "`match_action` accepts what begins with an action", "garbage"),
    Fault("UnreadableMoves", "unreadable replies move the player", "garbage"),
    Fault("LongRepliesRaise", "long replies raise", "garbage"),
    Fault("MagicWord", "a reply with a magic word is paid", "words"),
    Fault("MagicReply", "one magic reply is paid", "words"),
    Fault("MagicAction", "an action that is not listed wins", "words"),
    Fault("FlatteryPays", "a word in the thoughts is paid", "words"),
    Fault(
        "MagicIsComputed", "replies whose letters add up to a number are paid", None,
        why="no such reply stands in the source, and one in 9,973 replies is one",
    ),
    Fault(
        "ParserShortens", "the parser reads three letters of an action", "parsers",
        {"reply_styles": ("faults.planted_sight:LastTagParser",)},
    ),
    Fault(
        "ParserIsSlow", "the parser's time grows with the square of the blanks", "parser_time",
        {"reply_styles": ("faults.planted_sight:TrimmingParser",)},
    ),
    Fault("MemoryGrows", "every step keeps a picture", "resources"),
    Fault("TrailGrows", "every step keeps a line of text", "resources"),
    Fault("FilesStayOpen", "every episode leaves a file open", "resources"),
    Fault("ThreadsStay", "every episode leaves a thread", "resources"),
    Fault("ProcessesStay", "every episode leaves a process", "resources"),
    Fault("CloseTwiceRaises", "closing twice raises", "resources"),
    Fault("WritesAFile", "it writes a file where it is started", "side_effects"),
    Fault("LeavesATemporaryFile", "it leaves a temporary file", "side_effects"),
    Fault("ChangesTheFolder", "it changes the working directory", "side_effects"),
    Fault("ChangesTheVariables", "it sets an environment variable", "side_effects"),
    Fault("ChangesThePath", "it changes `sys.path`", "side_effects"),
    Fault("AsksTheNetwork", "it asks the network", "side_effects"),
    Fault("Prints", "it prints", "side_effects"),
    Fault("DrawsFromRandom", "it draws from the global random module", "side_effects"),
    Fault("DrawsFromNumpy", "it draws from numpy's global generator", "side_effects"),
)  # fmt: skip
