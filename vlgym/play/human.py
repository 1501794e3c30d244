"""A person as a policy: reads the prompt on the terminal and the pictures in files, and types replies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..env import VLEnv
from ..env.prompts import write_messages
from ..env.rendering import encode_png
from ..env.spaces import match_legal
from ..errors import UserError
from ..registry.making import unwrap
from ..terminal import measure_width, show_safe
from ..types import Image, Reply, Turn
from .terminal_pictures import choose_protocol, show_picture

END = "."
"""The line that ends a reply of several lines, as in mail programs."""

MOST_CHOICES = 100
"""Most legal actions numbered on the screen; the numbers of the others are valid, too."""

HINT = f"Write as many lines as you like; a line with nothing but {END!r} ends the reply."
"""Note for a player where replies have several lines."""


class HumanPolicy:
    """Asks the person at the terminal.

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
        images = [part["image"] for message in turn.messages for part in message["content"] if part["type"] == "image"]
        files = self._write_pictures(images)
        env = unwrap(turn.env)
        long = takes_lines(env)
        hint = f"\n{HINT}" if long else f"\n{number_choices(env)}"
        _say(
            f"\n--- {turn.part or turn.env_id}, turn {turn.turn + 1} ---\n{write_messages(turn.messages, files)}{hint}"
        )
        if images:
            show_picture(images[-1], choose_protocol("auto", sys.stdout), sys.stdout)
        _say("> ", "")
        line = read_line()
        return Reply(complete_reply(env, read_rest(line) if long else line))

    def _write_pictures(self, images: Sequence[Image]) -> dict[int, str]:
        self.pictures.mkdir(parents=True, exist_ok=True)
        files = {}
        for index, image in enumerate(images):
            path = self.pictures / f"picture-{index + 1}-of-{len(images)}.png"
            path.write_bytes(encode_png(image))
            files[id(image)] = str(path)
        return files


def takes_lines(env: VLEnv) -> bool:
    """True if actions have several lines, such as code, so that a reply has, too."""
    return any("\n" in action for action in env.legal_actions())


def read_line() -> str:
    """Return the next line of the input, without its end.

    Raises:
        UserError: the input has ended.
    """
    line = sys.stdin.readline()
    if not line:
        raise UserError("The input has ended. Finished episodes are kept; continue with --resume.")
    return line.rstrip("\r\n")


def read_rest(first: str) -> str:
    """Return a first line and those after it, up to one with nothing but `END`, or up to the end of the input."""
    lines = [first]
    while lines[-1] != END and (line := sys.stdin.readline()):
        lines.append(line.rstrip("\r\n"))
    return "\n".join(lines[:-1] if lines[-1] == END else lines)


def number_choices(env: VLEnv) -> str:
    """Return the legal actions with their numbers, as many on a line as fit."""
    actions = env.legal_actions()
    if not actions:
        return "No action is legal here."
    width, lines = measure_width(sys.stdout), ["Choose:"]
    for number, action in enumerate(actions[:MOST_CHOICES], 1):
        choice = show_safe(f"#{number} {action}")
        if len(lines[-1]) + 2 + len(choice) > width:
            lines.append("")
        lines[-1] += f"  {choice}"
    more = len(actions) - MOST_CHOICES
    return "\n".join(lines + ([f"  and {more} more"] if more > 0 else []))


def pick_choice(text: str, actions: Sequence[str]) -> str | None:
    """Return the action whose number was typed, as `#3` or `3`; `None` where it is no number of one."""
    digits = text.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:9]) <= len(actions):
        return None
    return actions[int(digits[:9]) - 1]


def complete_reply(env: VLEnv, text: str) -> str:
    """Return a whole reply: a bare legal action, or its number, is put into the reply format; other text stays as it
    is.

    An action that is called like a number comes first; `#3` is always the third one.
    """
    actions = env.legal_actions()
    action = match_legal(text, actions) or pick_choice(text, actions)
    return text if action is None else env.parser.format([action])


def _say(text: str, end: str = "\n") -> None:
    """Print with terminal control characters made visible: an environment wrote some of the text."""
    sys.stdout.write(show_safe(text) + end)
    sys.stdout.flush()
