"""Faults of pictures, texts, values and side effects: each is `Lantern` with one fault."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from faults.lantern import STEPS, Lantern, plant, stepping, telling

from vlgym.types import Outcome

PictureIsConstant = plant(image=lambda env: np.full((*env.image_size, 3), 60, np.uint8))
WordsTellTheSteps = plant(describe=lambda env: f"{env.lantern}, {env.walker}, {env.steps} steps.")
DrawingDraws = plant(image=lambda env: (env.np_random.random(), env.draw())[1])
RenderUnlike = plant(render=lambda env: env.draw() // 2)
TextTellsTheAnswer = telling(lambda env: f"Hint: {env.oracle()}.")


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


class ListIsShuffled(Lantern):
    def legal_actions(self) -> list[str]:
        first = self.count() % 4
        return [*STEPS][first:] + [*STEPS][:first]


class ListTellsTheAnswer(Lantern):
    def legal_actions(self) -> list[str]:
        best = self.oracle()
        return sorted(STEPS, key=lambda name: name != best)


RewardIsNumpy = stepping(lambda reply, reward, *rest: (np.float32(reward), *rest))


def informing(name: str, value: Callable[[Any], Any]) -> type[Lantern]:
    """Return a class with more in its info."""
    return plant(extra_info=lambda env: {**Lantern.extra_info(env), name: value(env)})


InfoIsNoJson = informing("seen", lambda env: {env.walker})
InfoIsInfinite = informing("worth", lambda env: float("inf") if env.steps > 2 else 0.0)
InfoIsSharedFromTurnThree = informing("trail", lambda env: TRAIL if env.turn >= 3 else [])
TRAIL: list[int] = []

ListIsDoubled = plant(legal_actions=lambda env: [*STEPS, *(["up"] if env.turn > 4 else [])])
ListIsEmpty = plant(legal_actions=lambda env: [] if env.turn == 7 else [*STEPS])
AcceptsAnything = plant(match_action=lambda env, wanted: Lantern.match_action(env, wanted) or "up")


class AcceptsBeginnings(Lantern):
    def match_action(self, wanted: str) -> str | None:
        return next((name for name in STEPS if wanted.startswith(name)), super().match_action(wanted))


class MagicWord(Lantern):
    def step(self, action: str) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, reward + 0.5 * ("xyzzy" in action), *rest


class MagicAction(Lantern):
    def match_action(self, wanted: str) -> str | None:
        return "plugh" if wanted == "plugh" else super().match_action(wanted)

    def act(self, action: str) -> Outcome:
        return Outcome(1.0, terminated=True) if action == "plugh" else super().act(action)


class UnreadableMoves(Lantern):
    def step(self, action: str) -> Any:
        if self.parser.parse(action, None).failure is not None:
            self.walker = (self.inside(self.walker[0] + 1), self.walker[1])
        return super().step(action)


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


class AsksTheNetwork(Lantern):
    def begin(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("192.0.2.1", 9))  # a documentation address


ChangesTheFolder = plant(begin=lambda env: os.chdir(tempfile.gettempdir()))
ChangesThePath = plant(begin=lambda env: sys.path.append("/nowhere/lantern"))
