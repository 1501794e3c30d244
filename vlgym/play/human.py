"""A person as a policy: reads the prompt on the terminal, and types replies.

Pictures go to files, and to the terminal: by kitty's protocol, as sixels, or as half blocks.
"""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from PIL import Image as PILImage

from ..env import VLEnv
from ..env.prompts import write_messages
from ..env.rendering import encode_png
from ..errors import UserError, nearest, show_safe
from ..files import write_whole
from ..parsers import match_legal
from ..registry.making import unwrap
from ..terminal import fit_words, measure_width
from ..types import Image, Message, Reply, Turn
from .controls import list_pictures

PROTOCOLS = ("auto", "kitty", "sixel", "blocks", "none")  # `auto`: the best that the terminal has
MOST_COLUMNS, MOST_ROWS = 64, 32  # character cells of a picture
END = "."  # the line that ends a reply of several lines, as in mail programs
MOST_CHOICES = 100  # legal actions shown with numbers; the numbers of the others are valid, too
LINES_HINT = f"Write as many lines as you like; a line with nothing but {END!r} ends the reply."
HELP = """\
Type a whole reply, as a model would write it, or just a legal action or its
number: it is then put into the reply format.
  :oracle   let the oracle answer this turn
  :prompt   show the whole prompt of this turn, earlier turns included
  :help     this text
  :quit     end the game (so does the end of the input)"""

PLAYER_COMMANDS = (":oracle", ":prompt", ":help", ":quit")
LEFT = "The input has ended. Finished episodes are kept; continue with --resume."


class InputEnded(UserError):
    """The person has left: by `:quit`, or the input has ended."""


class HumanPolicy:
    """Asks the person at the terminal.

    Args:
        pictures: folder for the pictures of an episode in their order; the next one's replace them.
        protocol: how the newest one is drawn, of `PROTOCOLS`.
    """

    name = "human"
    concurrency = 1

    def __init__(self, pictures: Path, protocol: str = "auto", *, oracle: bool = False) -> None:
        self.pictures, self.protocol, self.oracle = pictures, protocol, oracle
        lines = [line for line in HELP.split("\n") if oracle or ":oracle" not in line]
        self._help, self._helped = "\n".join(lines), False
        self._files: dict[int, tuple[Image, Path]] = {}
        self._count = 0

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Ask for a reply to each prompt; `InputEnded` where there is none."""
        replies = []
        for turn in turns:
            self.show(turn)
            replies.append(self.ask(turn))
        return replies

    def show(self, turn: Turn) -> None:
        """Show what is new in a prompt: its last message, at the first turn all of it."""
        if turn.turn == 0:
            self._files, self._count = {}, 0
        images = list_pictures(turn.messages)
        self._files = {id(image): (image, self.keep(image)) for image in images}
        new = self._write(turn.messages[-1:] if turn.turn else turn.messages)
        say(f"\n--- {turn.part}{', ' if turn.part else ''}turn {turn.turn + 1} ---\n{new}")
        if images:
            self.draw(images[-1])

    def ask(self, turn: Turn) -> Reply:
        """Read lines until one is a reply."""
        env = unwrap(turn.env)
        if not self._helped:
            say(self._help)
            self._helped = True
        say(LINES_HINT if takes_lines(env) else number_choices(env))

        # Commands do not end a turn; anything else is the reply.
        while True:
            print("> ", end="", flush=True)
            line = read_line()
            command = line.strip()
            if not sys.stdin.isatty():
                say(line)
            if command == ":quit":
                raise InputEnded(LEFT)
            if command == ":oracle" and self.oracle:
                if (reply := env.solve()) is not None:
                    say(f"the oracle writes: {reply}")
                    return Reply(reply)
                say("The oracle has no action here.")
            elif command == ":prompt":
                say(self._write(turn.messages))
            elif command == ":help":
                say(self._help)
            elif command.startswith(":"):
                near = nearest(command, [each for each in PLAYER_COMMANDS if each in self._help])
                say(f"Unknown command {command!r}.{near}\n{self._help}")
            else:
                typed = read_rest(line) if takes_lines(env) else line
                reply = complete_reply(env, typed)
                if reply != typed:
                    say(f"written as: {reply}")
                return Reply(reply)

    def keep(self, image: Image) -> Path:
        """Write a picture that the prompt does not show yet, and return its file."""
        if id(image) not in self._files:
            path = self.pictures / f"picture-{self._count:03d}.png"
            self.pictures.mkdir(parents=True, exist_ok=True)
            write_whole(path, encode_png(image), durable=False)
            self._files[id(image)] = image, path
            self._count += 1
        return self._files[id(image)][1]

    def draw(self, image: Image) -> None:
        show_picture(image, choose_protocol(self.protocol, sys.stdout), sys.stdout)

    def _write(self, messages: Sequence[Message]) -> str:
        return write_messages(messages, {number: str(path) for number, (_, path) in self._files.items()})


def takes_lines(env: VLEnv) -> bool:
    """True if actions have several lines, such as code, so that a reply has, too."""
    return any("\n" in action for action in env.legal_actions())


def read_line() -> str:
    """Return the next line of the input, without its end, or raise `InputEnded`."""
    line = sys.stdin.readline()
    if not line:
        raise InputEnded(LEFT)
    return line.rstrip("\r\n")


def read_rest(first: str) -> str:
    """Return a first line and those after it, up to a line `END` or the end of the input."""
    lines = [first]
    while lines[-1] != END and (line := sys.stdin.readline()):
        lines.append(line.rstrip("\r\n"))
    return "\n".join(lines[:-1] if lines[-1] == END else lines)


def number_choices(env: VLEnv) -> str:
    """Return the numbered legal actions, as many on a line as fit; none with a `notation`."""
    actions = env.legal_actions()
    if not actions:
        return "No action is legal here."
    if env.notation:
        return "Write an action in one of the forms above."

    # A choice is not broken: it starts a new line instead.
    width, lines = measure_width(sys.stdout), ["Choose:"]
    for number, action in enumerate(actions[:MOST_CHOICES], 1):
        choice = show_safe(f"#{number} {action}")
        if len(lines[-1]) + 2 + len(choice) > width:
            lines.append("")
        lines[-1] += f"  {choice}"
    more = len(actions) - MOST_CHOICES
    return "\n".join(lines + ([f"  and {more} more"] if more > 0 else []))


def pick_choice(text: str, actions: Sequence[str]) -> str | None:
    """Return the action whose number was typed, as `#3` or `3`; `None` for other text."""
    digits = text.strip().removeprefix("#")
    number = int(digits[:9]) if digits.isascii() and digits.isdigit() else 0
    return actions[number - 1] if 1 <= number <= len(actions) else None


def complete_reply(env: VLEnv, text: str) -> str:
    """Return a whole reply: a bare legal action, or its number, is put into the reply format.

    A legal action named `3` comes before number 3; `#3` is always the third that is listed.
    """
    actions = env.legal_actions()
    listed = [] if getattr(env, "notation", "") else actions
    action = match_legal(text, actions) or pick_choice(text, listed)
    return text if action is None else env.parser.format([action])


def say(text: str) -> None:
    """Print with control characters made visible: others wrote some of the text."""
    sys.stdout.write(fit_words(show_safe(text), sys.stdout) + "\n")
    sys.stdout.flush()


def choose_protocol(protocol: str, stream: Any) -> str:
    """Return how to draw on a stream; for `auto`, the best that its terminal says it can do."""
    if protocol != "auto":
        return protocol
    if os.environ.get("TERM", "dumb") == "dumb" or os.environ.get("NO_COLOR"):
        return "none"
    keyboard = sys.__stdin__
    if not (stream.isatty() and keyboard and keyboard.isatty()):
        return "none"

    # The terminal answers as if somebody typed.
    renderable = _import_renderable()
    if renderable.sixel.query_terminal_support():
        return "sixel"
    if renderable.tgp.query_terminal_support():
        return "kitty"
    return "blocks" if "utf" in (stream.encoding or "utf-8").lower() else "none"


def show_picture(image: Image, protocol: str, stream: Any) -> None:
    """Write a picture to a stream, `[H, W, 3] uint8`; nothing where the protocol is `none`."""
    if protocol == "none":
        return
    from rich.console import Console

    renderable = _import_renderable()
    names = {"kitty": "TGPImage", "sixel": "SixelImage", "blocks": "HalfcellImage"}
    kind = getattr(renderable, names[protocol])
    width = min(measure_width(stream), MOST_COLUMNS)
    console = Console(file=stream, force_terminal=True, width=width, height=MOST_ROWS, legacy_windows=False)
    console.print(kind(PILImage.fromarray(image), width="auto", height="auto"), end="")
    stream.flush()


def _import_renderable() -> ModuleType:
    """Import `textual_image.renderable` without its questions to the terminal."""
    logging.getLogger("textual_image").setLevel(logging.ERROR)  # many terminals tell no size
    stream, sys.__stdout__ = sys.__stdout__, None  # type: ignore[misc]
    try:
        from textual_image import _terminal, renderable
    finally:
        sys.__stdout__ = stream  # type: ignore[misc]
    try:
        _terminal.get_cell_size()
    except Exception:  # the terminal has no size, or there is no keyboard to answer from
        _terminal.get_cell_size._result = _terminal.CellSize(8, 16)  # type: ignore[attr-defined]
    return renderable
