"""A person as a policy: reads the prompt on the terminal and the pictures in files, and types replies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .env import VLEnv
from .errors import UserError
from .making import unwrap
from .prompts import write_messages
from .rendering import encode_png
from .spaces import match_legal
from .types import Reply, Turn


class HumanPolicy:
    """Asks whoever sits at the terminal.

    Args:
        pictures: folder for the pictures of the current prompt; those of the prompt before are written over.
    """

    name = "human"
    concurrency = 1

    def __init__(self, pictures: Path) -> None:
        self.pictures = pictures

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask for a reply to each prompt.

        Raises:
            UserError: the input has ended.
        """
        return [self._ask(turn) for turn in turns]

    def _ask(self, turn: Turn) -> Reply:
        files = self._write_pictures(turn)
        _say(
            f"\n--- {turn.part or turn.env_id}, turn {turn.turn + 1} ---\n{write_messages(turn.messages, files)}\n> ",
            "",
        )
        line = sys.stdin.readline()
        if not line:
            raise UserError("The input has ended. What was finished is kept; go on with --resume.")
        return Reply(complete_reply(unwrap(turn.env), line.rstrip("\r\n")))

    def _write_pictures(self, turn: Turn) -> dict[int, str]:
        self.pictures.mkdir(parents=True, exist_ok=True)
        images = [part["image"] for message in turn.messages for part in message["content"] if part["type"] == "image"]
        files = {}
        for index, image in enumerate(images):
            path = self.pictures / f"picture-{index + 1}-of-{len(images)}.png"
            path.write_bytes(encode_png(image))
            files[id(image)] = str(path)
        return files


def complete_reply(env: VLEnv, text: str) -> str:
    """Return a whole reply: a bare legal action is put into the reply format, anything else is left as it is."""
    action = match_legal(text, env.legal_actions())
    return text if action is None else env.parser.format([action])


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()
