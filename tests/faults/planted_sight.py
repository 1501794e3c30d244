"""Faults of pictures, texts, values, and of what is done to the process: each class is `Lantern` with one fault."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from faults.lantern import STEPS, Lantern

from vlgym.parsers import TagParser
from vlgym.types import Outcome, Parsed


class PictureIsConstant(Lantern):
    def image(self) -> np.ndarray:
        return np.full((*self.image_size, 3), 60, np.uint8)


class WordsTellTheSteps(Lantern):
    def describe(self) -> str:
        return f"Lantern {self.lantern}, walker {self.walker}, {self.steps} steps."


class PictureIsFrozen(Lantern):
    def begin(self) -> None:
        self.first = self.draw()

    def image(self) -> np.ndarray:
        return self.first.copy()


class PictureFreezesLater(Lantern):
    def act(self, action: str) -> Outcome:
        if self.steps == 8:
            self.last = self.draw()
        return super().act(action)

    def image(self) -> np.ndarray:
        return self.last.copy() if self.steps > 8 else self.draw()


class PictureIgnoresTheSeed(Lantern):
    def image(self) -> np.ndarray:
        canvas = np.full((*self.image_size, 3), 20, np.uint8)
        canvas[:, : 4 * self.steps + 2] = 90
        return canvas


class PictureLags(Lantern):
    def begin(self) -> None:
        self.before = self.draw()

    def act(self, action: str) -> Outcome:
        self.before = self.draw()
        return super().act(action)

    def image(self) -> np.ndarray:
        return self.before.copy()


class PictureIgnoresItsSize(Lantern):
    def image(self) -> np.ndarray:
        wanted, self.image_size = self.image_size, (48, 48)
        canvas = self.draw()
        self.image_size = wanted
        return canvas


class PictureOfFloats(Lantern):
    def image(self) -> np.ndarray:
        return self.draw() / 255.0


class RenderUnlike(Lantern):
    def render(self) -> Any:
        return self.draw() // 2 if self.render_mode == "rgb_array" else None


class RenderIsLate(Lantern):
    shown: Any = None

    def render(self) -> Any:
        before, self.shown = self.shown, self.draw()
        return (self.shown if before is None else before) if self.render_mode == "rgb_array" else None


class DrawingMoves(Lantern):
    drawn = 0

    def image(self) -> np.ndarray:
        self.drawn += 1
        canvas = self.draw()
        canvas[0, self.drawn % 8] = 255
        return canvas


class DrawingDraws(Lantern):
    def image(self) -> np.ndarray:
        self.np_random.random()
        return self.draw()


class ListIsShuffled(Lantern):
    asked = 0

    def legal_actions(self) -> list[str]:
        self.asked += 1
        names = list(STEPS)
        return names[self.asked % 4 :] + names[: self.asked % 4]


class TextTellsTheAnswer(Lantern):
    def state_text(self) -> str:
        return f"{super().state_text()} Hint: {self.oracle()}."


class TaskTellsTheAnswer(Lantern):
    def begin(self) -> None:
        self.hint = self.oracle()

    def task(self) -> str:
        return f"{super().task()} Begin with {self.hint}."

    def state_text(self) -> str:
        return f"{super().state_text()} (solution: {self.oracle()})"


class ListTellsTheAnswer(Lantern):
    def legal_actions(self) -> list[str]:
        best = Lantern.oracle(self)
        return sorted(STEPS, key=lambda name: name != best)


class ListEndsWithTheAnswer(Lantern):
    def legal_actions(self) -> list[str]:
        best = Lantern.oracle(self)
        return sorted(STEPS, key=lambda name: name == best)


class TextTellsThePlaces(Lantern):
    def state_text(self) -> str:
        return f"{super().state_text()} {self.walker} {self.lantern}"


class RewardIsNumpy(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, np.float32(reward), terminated, truncated, info


class FlagIsNumpy(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, np.bool_(terminated), truncated, info


class InfoIsNoJson(Lantern):
    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "seen": {self.walker}}


class InfoHoldsAnArray(Lantern):
    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "place": np.array(self.walker)}


class InfoIsInfinite(Lantern):
    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "worth": float("inf") if self.steps > 2 else 0.0}


class InfoIsSharedFromTurnThree(Lantern):
    def begin(self) -> None:
        self.trail: list[int] = []

    def extra_info(self) -> dict[str, Any]:
        return {**super().extra_info(), "trail": self.trail if self.turn >= 3 else []}


class ImageIsShared(Lantern):
    canvas: Any = None

    def image(self) -> np.ndarray:
        fresh = self.draw()
        if self.canvas is None or self.canvas.shape != fresh.shape:
            self.canvas = fresh
        self.canvas[:] = fresh
        return self.canvas


class ListIsDoubled(Lantern):
    def legal_actions(self) -> list[str]:
        return [*STEPS, *(["up"] if self.turn > 4 else [])]


class ListIsEmpty(Lantern):
    def legal_actions(self) -> list[str]:
        return [] if self.turn == 7 else list(STEPS)


class AcceptsAnything(Lantern):
    def match_action(self, wanted: str) -> str | None:
        return super().match_action(wanted) or "up"


class AcceptsBeginnings(Lantern):
    def match_action(self, wanted: str) -> str | None:
        found = super().match_action(wanted)
        return found or next((name for name in STEPS if wanted.startswith(name)), None)


class MagicWord(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + (0.5 if "xyzzy" in action else 0.0), terminated, truncated, info


class MagicReply(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + (0.5 if action == "open sesame" else 0.0), terminated, truncated, info


class MagicAction(Lantern):
    def match_action(self, wanted: str) -> str | None:
        return "plugh" if wanted == "plugh" else super().match_action(wanted)

    def act(self, action: str) -> Outcome:
        return Outcome(1.0, terminated=True) if action == "plugh" else super().act(action)


class FlatteryPays(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward + (0.1 if "please" in action else 0.0), terminated, truncated, info


class MagicIsComputed(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        paid = 0.5 if sum(map(ord, action)) % 9973 == 4711 else 0.0
        return observation, reward + paid, terminated, truncated, info


class UnreadableMoves(Lantern):
    def step(self, action: str) -> Any:
        if self.parser.parse(action, None).failure is not None:
            self.walker = (self.inside(self.walker[0] + 1), self.walker[1])
        return super().step(action)


class LongRepliesRaise(Lantern):
    def step(self, action: str) -> Any:
        if len(action) > 4000:
            raise ValueError("too long")
        return super().step(action)


class LastTagParser(TagParser):
    """Reads the first letter of an action only."""

    name = "letter"

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        read = super().parse(text, legal)
        return Parsed(tuple(action[:3] for action in read.actions), read.failure, read.span)


class ParserShortens(Lantern): ...


class TrimmingParser(TagParser):
    """Takes blanks off the end of each line by an expression that begins again at each blank."""

    name = "trim"

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        return super().parse(re.sub(r"\s+$", "", text), legal)


class ParserIsSlow(Lantern): ...


class MemoryGrows(Lantern):
    kept: ClassVar[list[Any]] = []

    def act(self, action: str) -> Outcome:
        self.kept.append(self.draw())
        return super().act(action)


class TrailGrows(Lantern):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.log: list[str] = []

    def act(self, action: str) -> Outcome:
        self.log.append(f"step {self.steps} of {self.reset_seed} from {self.walker} to {self.lantern}: {action} " * 12)
        return super().act(action)


class FilesStayOpen(Lantern):
    open: ClassVar[list[Any]] = []

    def begin(self) -> None:
        if len(self.open) < 200:
            self.open.append(os.open(os.devnull, os.O_RDONLY))


class ThreadsStay(Lantern):
    def begin(self) -> None:
        if threading.active_count() < 120:
            threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()


class ProcessesStay(Lantern):
    started: ClassVar[list[Any]] = []

    def begin(self) -> None:
        if self.reset_seed is not None and len(self.started) < 60:
            program = "import time; time.sleep(20)"
            self.started.append(subprocess.Popen([sys.executable, "-S", "-E", "-c", program]))


class CloseTwiceRaises(Lantern):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


class WritesAFile(Lantern):
    def begin(self) -> None:
        Path(os.environ.get("LANTERN_LOG", "lantern.log")).write_text("started\n", encoding="utf-8")


class LeavesATemporaryFile(Lantern):
    def begin(self) -> None:
        with tempfile.NamedTemporaryFile(prefix="lantern", delete=False) as file:
            file.write(b"left")


class ChangesTheFolder(Lantern):
    def begin(self) -> None:
        os.chdir(tempfile.gettempdir())


class ChangesTheVariables(Lantern):
    def begin(self) -> None:
        os.environ["LANTERN"] = "lit"


class ChangesThePath(Lantern):
    def begin(self) -> None:
        if "/nowhere/lantern" not in sys.path:
            sys.path.append("/nowhere/lantern")


class AsksTheNetwork(Lantern):
    def begin(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("192.0.2.1", 9))  # a documentation address; a datagram socket sends nothing here


class Prints(Lantern):
    def begin(self) -> None:
        print("lantern at", self.lantern)


class DrawsFromNumpy(Lantern):
    def image(self) -> np.ndarray:
        np.random.random()  # noqa: NPY002
        return self.draw()
