"""Every recorded episode of some folders, kept in memory: a line of a file is read once, and new ones as they come.

Only what the list needs is kept, and where each turn stands in its file. What a turn holds is read when it is opened
(`vlgym.ui.turns`).
"""

from __future__ import annotations

import hashlib
import threading
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..errors import plain_line
from ..trajectory import METADATA
from .files import Place, find_places, open_inside
from .lines import Line, read_line, split_lines

LOOK_EVERY = 2.0  # seconds between looks for new folders
AT_ONCE = 0.6  # seconds that a page waits for reading; the rest is read for the next one


@dataclass(slots=True)
class Episode:
    """One episode.

    Attributes:
        folder: key of its folder.
        order: its place in the folder's file, from 0.
        run: key of its run.
        env_id: environment.
        part: part of the evaluation; else empty.
        number: of the episode.
        repeat: which playing of its seed.
        seed: of its reset.
        newest: larger for what was read later.
        offsets: first byte and size of each turn's line.
        rewards: of each turn.
        codes: how each reply was read: `ok` or the failure code.
        over: whether it has ended.
        truncated: whether by a limit.
        success: the last turn's flag.
        searched: all replies in lower case.
    """

    folder: str
    order: int
    run: str
    env_id: str
    part: str
    number: int
    repeat: int
    seed: int | None
    newest: int = 0
    offsets: list[tuple[int, int]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    over: bool = False
    truncated: bool = False
    success: bool = False
    searched: str = ""

    @property
    def total(self) -> float:
        """The return."""
        return sum(self.rewards)

    @property
    def turns(self) -> int:
        """How many there are so far."""
        return len(self.offsets)

    @property
    def failures(self) -> list[str]:
        """The failure codes that occurred, each once, in order."""
        return [code for code in dict.fromkeys(self.codes) if code != "ok"]

    def add(self, line: Line) -> None:
        """Append a turn."""
        self.offsets.append((line.start, line.size))
        self.rewards.append(line.reward)
        self.codes.append(line.parse)
        self.over, self.truncated, self.success = line.over, line.truncated, line.success
        self.searched += ("\n" if self.searched else "") + line.searched


@dataclass
class Folder:
    """One file of records as far as it was read.

    Attributes:
        key: of the folder, in addresses.
        place: where it is.
        run: key of its run.
        episodes: in the order of the file.
        read: bytes that were read.
        size: bytes that there are.
        broken: number of lines that cannot be read.
        left: whether lines are left for the next time.
        tail: the last line that was read: first byte, size, hash. Where it is another one now, the file is another one.
        open: what the turns of the last episode share, while it has not ended.
        problem: why the file cannot be read, if so.
    """

    key: str
    place: Place
    run: str
    episodes: list[Episode] = field(default_factory=list)
    read: int = 0
    size: int = 0
    broken: int = 0
    left: bool = False
    tail: tuple[int, int, int] | None = None
    open: tuple[object, ...] | None = None
    problem: str = ""


@dataclass(frozen=True)
class Run:
    """What belongs together: an evaluation, or a training run with all its recordings.

    Attributes:
        key: in addresses.
        name: for people.
        path: its folder.
    """

    key: str
    name: str
    path: Path


class Index:
    """Of some folders, and of all below them. May be used by several threads.

    Args:
        roots: folders; they need not exist yet. One below another is seen with it.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        given = list(dict.fromkeys(Path(root).resolve() for root in roots))
        self.roots = tuple(root for root in given if not set(root.parents) & set(given))
        self.folders: dict[str, Folder] = {}
        self.runs: dict[str, Run] = {}
        self._looked = -LOOK_EVERY
        self._count = 0
        self._lock = threading.RLock()

    def refresh(self, at_once: float = AT_ONCE) -> float:
        """Read what is new; return the share of all bytes that was read by now, 1 where nothing is left.

        Args:
            at_once: seconds after which to stop and leave the rest for the next time.
        """
        with self._lock:
            begun = time.monotonic()
            if begun - self._looked >= LOOK_EVERY:
                self._look()
                self._looked = time.monotonic()
            for folder in self.folders.values():
                self._read(folder, begun + at_once)
            if not any(folder.left for folder in self.folders.values()):
                return 1.0
            size = sum(folder.size for folder in self.folders.values())
            return min(0.999, sum(folder.read for folder in self.folders.values()) / max(1, size))

    def episodes(self) -> list[Episode]:
        """Return all episodes that were read."""
        with self._lock:
            return [episode for folder in self.folders.values() for episode in folder.episodes]

    def find(self, folder: str, order: int) -> Episode | None:
        """Return an episode by the key of its folder and its place there."""
        with self._lock:
            found = self.folders.get(folder)
            return found.episodes[order] if found is not None and 0 <= order < len(found.episodes) else None

    def count_broken(self) -> int:
        """Return how many lines could not be read."""
        return sum(folder.broken for folder in self.folders.values())

    def problems(self) -> list[str]:
        """Return a line for each file that cannot be read."""
        return [f"{folder.place.name}: {folder.problem}" for folder in self.folders.values() if folder.problem]

    def _look(self) -> None:
        """Find new folders, and forget those that are gone."""
        found: dict[str, Folder] = {}
        runs: dict[str, Run] = {}
        for place in find_places(self.roots):
            key, run = make_key(place.folder), make_key(place.run)
            found[key] = self.folders.get(key) or Folder(key, place, run)
            runs.setdefault(run, Run(run, place.name, place.run))
        self.folders, self.runs = found, runs

    def _read(self, folder: Folder, until: float) -> None:
        """Read a file's new lines, as long as there is time."""
        path = folder.place.folder
        try:
            size = (path / METADATA).lstat().st_size
        except OSError:  # a run that has only a log so far
            return
        if size == folder.size and not folder.left:
            return
        try:
            with open_inside(path, METADATA) as file:
                if size < folder.read or not _is_same(file, folder):
                    self._forget(folder)
                folder.size, folder.left, folder.problem = size, False, ""
                for start, count, text in split_lines(file, folder.read):
                    self._add(folder, start, count, text)
                    if time.monotonic() > until:
                        folder.left = folder.read < size
                        return
        except OSError as error:
            folder.size, folder.left, folder.problem = size, False, plain_line(str(error))

    def _forget(self, folder: Folder) -> None:
        folder.episodes, folder.read, folder.broken, folder.tail, folder.open = [], 0, 0, None, None

    def _add(self, folder: Folder, start: int, size: int, text: bytes | None) -> None:
        folder.read = start + size
        try:
            if text is None:
                raise ValueError("it is too long")
            line = read_line(start, text)
        except ValueError:
            folder.broken += 1
            return
        folder.tail = (start, size, zlib.crc32(text))
        if folder.open != line.episode or line.turn == 0:
            self._count += 1
            place = (folder.key, len(folder.episodes), folder.run)
            folder.episodes.append(
                Episode(*place, line.env_id, line.part, line.number, line.repeat, line.seed, self._count)
            )
        folder.episodes[-1].add(line)
        folder.open = None if line.over else line.episode


def make_key(folder: Path) -> str:
    """Return what stands for a folder in addresses: the same after every start, and no path."""
    return hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:10]


def _is_same(file: BinaryIO, folder: Folder) -> bool:
    """Whether the last line that was read is still there: a run that goes on drops half of an episode."""
    if folder.tail is None:
        return True
    start, size, checksum = folder.tail
    file.seek(start)
    return zlib.crc32(file.read(size)) == checksum
