"""The first pictures of an environment for the gallery: made when they are asked for, one environment at a time, and
kept. `python -m vlgym.ui.frames ID` makes them, with a time limit: no plugin can stop the page.
"""

from __future__ import annotations

import base64
import functools
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from ..errors import plain_line
from ..making import make, unwrap
from ..prompts import PromptBuilder, write_messages
from ..rendering import encode_png
from ..seeding import episode_seed

LIMIT = 90.0  # seconds for an environment
SPLIT, EPISODES = "train", 3
_ONE = threading.Lock()


def look(env_id: str) -> dict[str, Any]:
    """Return what an installed environment looks like: `pictures` (PNG, base64), the first `prompt` as text, `card`
    (the class docstring), or the `error` why there is nothing to see."""
    with _ONE:
        return _look(env_id)


@functools.cache
def _look(env_id: str) -> dict[str, Any]:
    child = subprocess.Popen(
        [sys.executable, "-m", "vlgym.ui.frames", env_id], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
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
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)  # with what it started: a browser, an engine
    return {"error": plain_line(error), "pictures": []}


def make_look(env_id: str) -> dict[str, Any]:
    """Make what `look` returns, in this process."""
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
    os.dup2(2, 1)  # whatever a library prints goes elsewhere
    with os.fdopen(standard_output, "w", encoding="utf-8") as file:
        json.dump(make_look(sys.argv[1]), file)
