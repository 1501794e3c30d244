"""Every recorded episode of some folders, kept in memory: a line of a file is read once.

Kept are the fields of the list, and the place of each turn in its file, where the rest is read.
"""

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from starlette.requests import Request

from ..errors import plain_line
from ..play.trajectory import HEADER, METADATA, check_record_values
from .guarding import LOG, open_inside


def split_lines(file: BinaryIO, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield first byte, size and text of each whole line from a place on; the last may be cut."""
    file.seek(start)
    for line in file:
        if line.endswith(b"\n"):
            yield start, len(line), line
            start += len(line)


def read_row(text: bytes) -> dict[str, Any]:
    """Return what a line says; `ValueError` where it is no JSON object."""
    try:
        row = json.loads(text.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError("it is no JSON object")
    return row


PASSED = {"images", "tensorboard", "checkpoints", "model", "best", "adapter", "__pycache__"}
LOOK_EVERY = 2.0  # seconds between looks for new folders
SEARCHED = 20_000  # characters of a reply that are searched
LISTED_FIELDS = (  # of a turn
    "env_id", "part", "episode", "repeat", "seed", "turn", "reward", "parse", "reply", "terminated",
    "truncated", "success",
)  # fmt: skip
FORMAT_3_VALUES = {"part": "", "repeat": 0}  # fields that records of format 3 may lack


@dataclass(slots=True)
class IndexedEpisode:
    """One episode.

    Attributes:
        order: its place in the folder's file, from 0.
        newest: larger for what was read later.
        offsets: first byte and size of each turn's line.
        pictures: file of each turn's picture, or an empty text.
        codes: `ok` or the failure code of each reply.
        searched: the replies in lower case.
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
    pictures: list[str] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    over: bool = False
    truncated: bool = False
    success: bool = False
    searched: list[str] = field(default_factory=list)

    @property
    def total(self) -> float:
        return sum(self.rewards)

    @property
    def turns(self) -> int:
        return len(self.offsets)

    @property
    def failures(self) -> list[str]:
        """Failure codes, each once, in order."""
        return [code for code in dict.fromkeys(self.codes) if code != "ok"]

    @property
    def result(self) -> str:
        """One of `open`, `won` and `lost`."""
        return "open" if not self.over else "won" if self.success else "lost"

    @property
    def same(self) -> tuple[str, str, int, int] | None:
        """Key that episodes of two runs on one seed share; `None` if the seed is unknown."""
        return None if self.seed is None else (self.env_id, self.part, self.seed, self.repeat)

    def add(self, row: Mapping[str, Any], start: int, size: int) -> None:
        """Append a turn, whose line begins at byte `start` of the file."""
        self.offsets.append((start, size))
        self.pictures.append(name if isinstance(name := row.get("file_name"), str) else "")
        self.rewards.append(row["reward"])
        self.codes.append(row["parse"])
        self.truncated = row["truncated"]
        self.over, self.success = self.truncated or row["terminated"], row["success"]
        self.searched.append(row["reply"][:SEARCHED].casefold())


@dataclass
class Folder:
    """One file of records, of which `read` bytes were read.

    Attributes:
        tail: the last line that was read. Where another one stands now, the file is another one.
        problem: why the file cannot be read, if so.
    """

    key: str
    path: Path
    run: str
    episodes: list[IndexedEpisode] = field(default_factory=list)
    read: int = 0
    broken: int = 0
    tail: bytes = b""
    problem: str = ""


@dataclass(frozen=True)
class IndexedRun:
    """An evaluation, or a training run with all its recordings."""

    key: str
    name: str
    path: Path


class Index:
    """Index of all below some folders, which need not exist yet. Several threads may use it."""

    def __init__(self, roots: Iterable[Path]) -> None:
        paths = list(dict.fromkeys(Path(root).resolve() for root in roots))
        self.roots = tuple(root for root in paths if not set(root.parents) & set(paths))
        self.folders: dict[str, Folder] = {}
        self.runs: dict[str, IndexedRun] = {}
        self._looked = -LOOK_EVERY
        self._count = 0
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read what is new."""
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_EVERY:
                self._look()
                self._looked = time.monotonic()
            for folder in self.folders.values():
                self._read(folder)

    def episodes(self) -> list[IndexedEpisode]:
        """Return all episodes that were read."""
        return [episode for folder in self.folders.values() for episode in folder.episodes]

    def problems(self) -> list[str]:
        """Return in lines what could not be read."""
        broken = sum(folder.broken for folder in self.folders.values())
        lines = [f"{each.path}: {each.problem}" for each in self.folders.values() if each.problem]
        return [f"{broken} line(s) cannot be read.", *lines] if broken else lines

    def _look(self) -> None:
        """Find new folders, and forget those that are gone."""
        folders: dict[str, Folder] = {}
        runs: dict[str, IndexedRun] = {}
        for folder, run, name in _find_records(self.roots):
            key, run_key = make_key(folder), make_key(run)
            folders[key] = self.folders.get(key) or Folder(key, folder, run_key)
            runs[run_key] = IndexedRun(run_key, name, run)
        self.folders, self.runs = folders, runs

    def _read(self, folder: Folder) -> None:
        """Read a file's new lines."""
        try:
            size = (folder.path / METADATA).lstat().st_size
        except OSError:  # a run that has only a log so far
            return
        if size == folder.read:
            return

        # Another last line makes another file: a resumed run drops half an episode.
        folder.problem = ""
        try:
            with open_inside(folder.path, METADATA) as file:
                file.seek(folder.read - len(folder.tail))
                if size < folder.read or file.read(len(folder.tail)) != folder.tail:
                    folder.episodes, folder.read, folder.broken, folder.tail = [], 0, 0, b""
                for start, count, text in split_lines(file, folder.read):
                    self._add(folder, start, count, text)
        except OSError as error:
            folder.problem = plain_line(str(error))

    def _add(self, folder: Folder, start: int, size: int, text: bytes) -> None:
        folder.read, folder.tail = start + size, text
        try:
            row = {**FORMAT_3_VALUES, **read_row(text)}
            check_record_values({name: row.get(name) for name in LISTED_FIELDS})
        except ValueError:
            folder.broken += 1
            return

        # Episodes of one file follow each other; `add` gives the turn to the last one.
        last = folder.episodes[-1] if folder.episodes else None
        if last is None or last.over or last.number != row["episode"] or row["turn"] == 0:
            self._count += 1
            fields = (row["env_id"], row["part"], row["episode"], row["repeat"], row["seed"])
            last = IndexedEpisode(folder.key, len(folder.episodes), folder.run, *fields, self._count)
            folder.episodes.append(last)
        last.add(row, start, size)


def get_index(request: Request) -> Index:
    """Return the server's index of records, refreshed."""
    index: Index = request.app.state.index
    index.refresh()
    return index


def make_key(folder: Path) -> str:
    """Return a folder's name in addresses: the same after every start, and no path."""
    return hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:10]


def _find_records(roots: tuple[Path, ...]) -> Iterator[tuple[Path, Path, str]]:
    """Yield each folder with records, or with a log only, its run's folder, and the run's name."""
    for root in roots:
        for at, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in PASSED and name[0] != ".")
            if METADATA in files or (LOG in files and HEADER in files):
                folder = Path(at)
                above = [each for each in (folder, *folder.parents) if root in (each, *each.parents)]
                run = next((each for each in above if (each / LOG).is_file()), folder)
                top = [root.name] if len(roots) > 1 or run == root else []
                yield folder, run, "/".join([*top, *run.relative_to(root).parts])
