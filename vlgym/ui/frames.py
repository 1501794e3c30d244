"""The first pictures of an environment for the gallery: made when they are asked for, one environment at a time, and
kept. `python -m vlgym.ui.frames ID` makes them, with a time limit: no plugin can stop the page.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from ..env.prompts import PromptBuilder, write_messages
from ..env.rendering import encode_png
from ..env.seeding import episode_seed
from ..errors import plain_line
from ..registry.making import make, unwrap

COMMAND = (sys.executable, "-m", "vlgym.ui.frames")
LIMIT = 90.0  # seconds for an environment
SPLIT, EPISODES = "train", 3


class Looks:
    """Makes looks in turn in a background thread, so that waiting callers hold no thread, and keeps them.

    Args:
        command: what is run, with the id behind it.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self.command = tuple(command)
        self._made: dict[str, Future[dict[str, Any]]] = {}
        self._thread = ThreadPoolExecutor(1)
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._closed = False

    async def look(self, env_id: str) -> dict[str, Any]:
        """Return what an installed environment looks like: `pictures` (PNG, base64), the first `prompt` as text,
        `card` (the class docstring), or the `error` why there is nothing to see."""
        if env_id not in self._made:
            self._made[env_id] = self._thread.submit(self._make, env_id)
        return await asyncio.shield(asyncio.wrap_future(self._made[env_id]))

    def close(self) -> None:
        """End the look in progress and drop those that wait."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                _kill(self._child)
        self._thread.shutdown(wait=False)

    def _make(self, env_id: str) -> dict[str, Any]:
        with self._lock:
            if self._closed:
                return {"error": "The page has ended.", "pictures": []}
            child = self._child = subprocess.Popen(
                [*self.command, env_id], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        with child:
            try:
                answer, told = child.communicate(timeout=LIMIT)
                return {"error": "", **json.loads(answer)}
            except subprocess.TimeoutExpired:
                error = f"It took longer than {LIMIT:g} s."
            except ValueError:
                lines = told.decode("utf-8", "replace").strip().splitlines()
                error = lines[-1] if lines else "It wrote no answer."
            finally:
                _kill(child)
                self._child = None
        return {"error": plain_line(error), "pictures": []}


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)  # with what it started: a browser, an engine


def make_look(env_id: str) -> dict[str, Any]:
    """Make what `Looks.look` returns, in this process."""
    env = make(env_id)
    inner = unwrap(env)
    pictures, prompt = [], ""
    for number in range(EPISODES):
        observation, info = env.reset(seed=episode_seed(env_id, SPLIT, number))
        pictures.append(base64.b64encode(encode_png(observation["image"])).decode("ascii"))
        if not prompt:
            details = info["vlgym"]
            messages = PromptBuilder.for_spec(inner.vlgym_spec).build(
                details["instructions"], details["turn_text"], observation["image"], [], system=inner.system_text
            )
            prompt = write_messages(messages)
    env.close()
    return {"pictures": pictures, "prompt": prompt, "card": inspect.getdoc(type(inner)) or ""}


if __name__ == "__main__":
    standard_output = os.dup(1)
    os.dup2(2, 1)  # a library's prints must not reach the pipe
    with os.fdopen(standard_output, "w", encoding="utf-8") as file:
        json.dump(make_look(sys.argv[1]), file)
