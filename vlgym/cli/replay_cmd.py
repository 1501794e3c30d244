"""`vlgym play --replay FOLDER`: show episodes that were recorded, turn by turn; nothing is played.

It reads any trajectory folder: an evaluation's, a program's own, or what a training run records while it trains. On a
terminal the newest episode is printed, into a pipe all of them; `vlgym ui` walks through them.

Records may be hostile: values of a wrong type are an error of one line, and text is never sent to the
terminal as it is.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from functools import partial
from pathlib import Path

from ..errors import TrajectoryError, UserError
from ..play.terminal_pictures import show_picture
from ..play.trajectory import METADATA, read_picture, read_trajectories
from ..terminal import fit_words, show_safe
from ..types import Message, StepRecord

EPISODES = "episodes"
"""Folder of a training run with one folder for each recording, named in the order of time."""

read_episodes = partial(read_trajectories, images=False, unfinished=False)
"""Yields the whole episodes of a folder."""


def show_recorded(folder: Path, back: int | None, picture: str) -> None:
    """Print recorded episodes.

    Args:
        folder: a trajectory folder, or a training run's.
        back: 0 for the newest episode, 1 for the one before it, and so on. `None` is the newest on a terminal, and
            elsewhere all of them, the newest last.
        picture: how pictures are drawn (`terminal_pictures.PICTURES`, but not `auto`).

    Raises:
        UserError: there is no such episode.
        TrajectoryError: a record is damaged or malformed.
    """
    if back is not None or sys.stdout.isatty():
        _print_episode(*find_episode(folder, back or 0), picture)
        return
    gap = ""
    for place in reversed(find_recordings(folder)):
        for episode in read_episodes(place):
            sys.stdout.write(gap)
            _print_episode(episode, place, picture)
            gap = "\n"
    if not gap:
        find_episode(folder, 0)  # says so


def find_episode(folder: Path, back: int) -> tuple[list[StepRecord], Path]:
    """Return a whole episode, its images by the names of their files, and the trajectory folder that holds it.

    Raises:
        UserError: there is no such episode.
        TrajectoryError: a record is damaged or malformed.
    """
    count = 0
    for place in find_recordings(folder):
        held, newest = 0, deque[list[StepRecord]](maxlen=back - count + 1)
        for episode in read_episodes(place):
            newest.append(episode)
            held += 1
        if back < count + held:
            return newest[0], place
        count += held
    raise UserError(
        f"--index {back}: {folder} holds {count} whole episode(s){f', 0 to {count - 1}' if count else ' yet'}. "
        "0 is the newest."
    )


def find_recordings(folder: Path, name: str = "--replay") -> list[Path]:
    """Return the trajectory folders in a folder, the newest first; an error calls it `name`."""
    if (folder / METADATA).is_file():
        return [folder]
    base = folder / EPISODES if (folder / EPISODES).is_dir() else folder
    found = sorted((path.parent for path in base.glob(f"[!.]*/{METADATA}")), reverse=True)
    if not found:
        raise UserError(
            f"{name} {folder} holds no recorded episode. Name the folder of a training run (`--record-every` says "
            "how often it records), or one that `vlgym eval` wrote."
        )
    return found


def _print_episode(episode: list[StepRecord], place: Path, picture: str) -> None:
    first, last, total = episode[0], episode[-1], 0.0
    _say(f"{first.part or first.env_id}, episode {first.episode}, seed {first.seed}. Recorded in {place}")
    colours = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"  # NO_COLOR makes it dumb
    for turn, record in enumerate(episode, 1):
        total += record.reward
        _say(f"\n--- turn {turn} of {len(episode)} ---")
        for message in record.messages:
            _say(f"[{message['role']}]")
            for part in message["content"]:
                _say(f"<image: {place / part['file_name']}>" if part["type"] == "image" else part["text"])
        if picture != "none":
            _draw_last(record.messages, place, picture)
        _say("[reply]")
        _write(mark_span(record.reply, record.span, colours))
        executed, cut = ", ".join(record.actions) or "nothing", "; cut by a limit" if record.cut else ""
        _say(f"parse: {record.parse}{cut}; executed: {executed}; reward: {record.reward:g}; return: {total:g}")
    state, success = "terminated" if last.terminated else "truncated", "yes" if last.success else "no"
    _say(f"\nEpisode {state} after {len(episode)} turn(s): success {success}, return {total:g}.")


def _draw_last(messages: list[Message], place: Path, picture: str) -> None:
    """Draw the newest image of a prompt, which is the turn's own."""
    names = [part["file_name"] for message in messages for part in message["content"] if part["type"] == "image"]
    try:
        for name in names[-1:]:
            show_picture(read_picture(place, name)[1], picture, sys.stdout)
    except TrajectoryError as error:
        _say(f"[the image cannot be read: {error}]")


def mark_span(reply: str, span: tuple[int, int] | None, colours: bool) -> str:
    """Return the reply, safe to print, and below it the lines of what was read as the action.

    Args:
        reply: what the model wrote.
        span: character range of the action in it; `None` where none was read.
        colours: show that range in reverse colours, too.
    """
    if span is None:
        return f"{show_safe(reply)}\n[nothing was read as an action]"
    start, end = span
    if not 0 <= start <= end <= len(reply):
        return f"{show_safe(reply)}\n[the record names characters {start} to {end}, which the reply lacks]"
    before, action, after = (show_safe(part) for part in (reply[:start], reply[start:end], reply[end:]))
    shown = f"{before}\x1b[7m{action}\x1b[27m{after}" if colours else before + action + after
    return f"{shown}\n[read as the action: {show_safe(repr(reply[start:end]))}, characters {start} to {end}]"


def _say(text: str) -> None:
    """Print with terminal control characters made visible: a model wrote some of the text."""
    _write(fit_words(show_safe(text), sys.stdout))


def _write(safe: str) -> None:
    sys.stdout.write(safe + "\n")
    sys.stdout.flush()
