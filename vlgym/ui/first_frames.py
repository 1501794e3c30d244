"""The first pictures of an environment, made in a process of its own: `python -m vlgym.ui.first_frames ID`.

What a plugin does may take long, print, or end its process; the page goes on all the same (see `vlgym.ui.frames`).
Writes one JSON object: `pictures` (PNG, base64), `prompt` (the first one as text), `card` (the class docstring).
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import sys

from ..making import make, unwrap
from ..prompts import PromptBuilder, write_messages
from ..rendering import encode_png
from ..seeding import episode_seed

SPLIT, EPISODES = "train", 3
LONGEST = 60_000  # characters of a text


def look(env_id: str) -> dict[str, object]:
    """Return what the page shows of an environment."""
    env = make(env_id)
    inner = unwrap(env)
    pictures, prompt = [], ""
    for number in range(EPISODES):
        observation, info = env.reset(seed=episode_seed(env_id, SPLIT, number))
        pictures.append(base64.b64encode(encode_png(observation["image"])).decode("ascii"))
        if not prompt:
            details = info["vlgym"]
            builder = PromptBuilder.for_spec(inner.vlgym_spec)
            prompt = write_messages(
                builder.build(
                    details["instructions"], details["turn_text"], observation["image"], [], system=inner.system_text
                )
            )
    card = inspect.getdoc(type(inner)) or ""
    env.close()
    return {"pictures": pictures, "prompt": prompt[:LONGEST], "card": card[:LONGEST]}


def main() -> None:
    """Write what the page shows of the environment that is named on the command line."""
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints goes elsewhere
    with os.fdopen(answer, "w", encoding="utf-8") as file:
        json.dump(look(sys.argv[1]), file)


if __name__ == "__main__":
    main()
