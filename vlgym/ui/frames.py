"""First pictures of environments for the gallery: made when they are asked for, one environment at a time, and kept.

Each is made by a process of its own, with a time limit: no plugin can stop the page.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..errors import plain_line
from .lines import as_text

LIMIT = 90.0  # seconds for an environment
LARGEST = 64_000_000  # bytes of an answer
MODULE = "vlgym.ui.first_frames"


@dataclass(frozen=True)
class Look:
    """What an environment looks like.

    Attributes:
        pictures: PNG files of the first pictures of some episodes.
        prompt: the first prompt as text.
        card: what the environment's author says of it.
        error: why there is nothing to see; else empty.
    """

    pictures: tuple[bytes, ...] = ()
    prompt: str = ""
    card: str = ""
    error: str = ""


class Frames:
    """Looks at environments; what was seen once is kept, and what failed, too. May be used by several threads.

    Args:
        command: what is run, before the id; a test may give another one.
        limit: seconds for an environment.
    """

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", MODULE), limit: float = LIMIT) -> None:
        self.command, self.limit = tuple(command), limit
        self._known: dict[str, Look] = {}
        self._one = threading.Lock()

    def look(self, env_id: str) -> Look:
        """Return what an environment looks like.

        Args:
            env_id: of an installed environment.
        """
        if env_id not in self._known:
            with self._one:
                if env_id not in self._known:  # another thread may have seen it while this one waited
                    self._known[env_id] = self._make(env_id)
        return self._known[env_id]

    def _make(self, env_id: str) -> Look:
        child = subprocess.Popen(
            [*self.command, env_id], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        try:
            answer, told = child.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            return Look(error=f"It took longer than {self.limit:g} s.")
        finally:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)  # with what it started: a browser, an engine
            child.kill()
            child.wait()
            for pipe in (child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()
        if child.returncode or len(answer) > LARGEST:
            lines = told.decode("utf-8", "replace").strip().splitlines()
            return Look(error=plain_line(lines[-1] if lines else f"It ended with status {child.returncode}."))
        try:
            said = json.loads(answer)
            pictures = tuple(base64.b64decode(each, validate=True) for each in said["pictures"])
            return Look(pictures, as_text(said["prompt"]), as_text(said["card"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return Look(error=f"Its answer cannot be read: {plain_line(str(error))}")
