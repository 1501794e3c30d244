"""`vlgym play --replay FOLDER`: show an episode that was recorded, turn by turn; nothing is played.

It reads any trajectory folder: an evaluation's, a program's own, or what a training run records while it trains.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from ..trajectory import METADATA, read_trajectories
from ..types import Message, StepRecord

EPISODES = "episodes"
"""Folder of a training run in which each recording has a folder of its own, named in the order of time."""


def show_recorded(folder: Path, back: int) -> None:
    """Print an episode.

    Args:
        folder: a trajectory folder, or a training run's.
        back: 0 for the newest episode, 1 for the one before it, and so on.

    Raises:
        UserError: there is no such episode.
    """
    count = 0
    for place in find_recordings(folder):
        held, newest = 0, deque[list[StepRecord]](maxlen=back - count + 1)
        for episode in read_trajectories(place, images=False, unfinished=False):
            newest.append(episode)
            held += 1
        if back < count + held:
            _show(newest[0], place, back)
            return
        count += held
    raise UserError(
        f"--index {back}: {folder} holds {count} whole episode(s){f', 0 to {count - 1}' if count else ' yet'}. "
        "0 is the newest."
    )


def find_recordings(folder: Path) -> list[Path]:
    """Return the trajectory folders in a folder, the newest first.

    Raises:
        UserError: there are none.
    """
    if (folder / METADATA).is_file():
        return [folder]
    base = folder / EPISODES if (folder / EPISODES).is_dir() else folder
    found = sorted((path.parent for path in base.glob(f"[!.]*/{METADATA}")), reverse=True)
    if not found:
        raise UserError(
            f"--replay {folder} holds no recorded episode. Name the folder of a training run (`--record-every` says "
            "how often it records), or one that `vlgym eval` wrote."
        )
    return found


def _show(episode: list[StepRecord], folder: Path, back: int) -> None:
    first = episode[0]
    where = f"{first.part or first.env_id}, episode {first.episode}, seed {first.seed}"
    _say(f"{where}. Recorded in {folder}; episodes back: {back}")
    total = 0.0
    for record in episode:
        total += record.reward
        executed = ", ".join(record.actions) or "nothing"
        cut = "; cut by a limit" if record.cut else ""
        _say(f"\n--- turn {record.turn + 1} ---")
        for line in _lines(record.messages, folder):
            _say(line)
        _say(f"[reply]\n{record.reply}")
        _say(f"parse: {record.parse}{cut}; executed: {executed}; reward: {record.reward:g}; return: {total:g}")
    last = episode[-1]
    state = "terminated" if last.terminated else "truncated"
    success = "yes" if last.success else "no"
    _say(f"\nEpisode {state} after {len(episode)} turn(s): success {success}, return {total:g}.")


def _lines(messages: list[Message], folder: Path) -> Iterator[str]:
    """A prompt as text, each image by the name of its file."""
    for message in messages:
        yield f"[{message['role']}]"
        for part in message["content"]:
            yield f"<image: {folder / part['file_name']}>" if part["type"] == "image" else part["text"]


def _say(text: str) -> None:
    """Print; what would steer a terminal is shown instead: a model wrote some of it."""
    plain = "".join(letter if letter.isprintable() or letter in "\n\t" else repr(letter)[1:-1] for letter in text)
    sys.stdout.write(plain + "\n")
    sys.stdout.flush()
