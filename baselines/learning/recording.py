"""Episodes of training to look at: prompt, picture, reply, action and reward of every turn.

After a given number of updates the next episode to begin in each environment id is kept, from its
first turn to its last. Each turn has the learner's value, advantage and log-probabilities. An
episode is written when the update in which it ended is over, as a trajectory folder
(`vlgym.play.trajectory`). Training has the same numbers without. A resumed run drops open ones.
"""

import math
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vlgym.files import discard, make_folder, written_whole
from vlgym.play.trajectory import TrajectoryWriter
from vlgym.types import LearnerNotes, StepRecord

from ..models.family import Family
from ..runs.folder import remove_folder
from .batch import Batch

EPISODES_FOLDER = "episodes"
_NAMED = ("format", "title", "environments", "versions", "policy")


class EpisodeRecorder:
    """Picks the episodes and writes them.

    Args:
        record: of the run; its environments and policy go into each recording.
        every: updates from one recording to the next; keep: how many folders remain.
    """

    def __init__(self, folder: Path, record: Mapping[str, Any], *, every: int, keep: int) -> None:
        self.folder, self.every, self.keep = folder, every, keep
        self.header = {name: record[name] for name in _NAMED if name in record} | {"split": "train"}
        self._slots: dict[str, int] = {}  # environment id -> the first environment of it
        self._requested: set[str] | None = None  # ids that this update asks for, if it does
        self._wanted: set[str] = set()
        self._open: dict[str, list[StepRecord]] = {}
        self._ended: list[list[StepRecord]] = []
        # Turns of this update: episode, place in it, and the sample, which is not kept.
        self._fresh: list[tuple[list[StepRecord], int, weakref.ref[Any]]] = []

    def begin(self, update: int) -> bool:
        """Return if the update that comes, from 1, has turns to record: the first one does."""
        self._requested = set() if (update - 1) % self.every == 0 else None
        self._fresh = []
        return self._requested is not None or bool(self._wanted or self._open)

    def see(self, row: Iterable[tuple[int, StepRecord]]) -> None:
        """Look at the records of one step, each with the number of its environment."""
        for slot, record in row:
            name = record.env_id
            if self._slots.setdefault(name, slot) != slot:
                continue
            if self._requested is not None and name not in self._requested:
                self._requested.add(name)
                self._wanted |= {name} - self._open.keys()

            # An episode is kept from its first turn on.
            if record.turn == 0 and name in self._wanted:
                self._wanted.discard(name)
                self._open[name] = []
            if name not in self._open:
                continue
            # Without what the learner keeps with a step: tensors, some of them on the accelerator.
            turns = self._open[name]
            turns.append(replace(record, extra=None, final_messages=None))
            if record.extra is not None:
                self._fresh.append((turns, len(turns) - 1, weakref.ref(record.extra)))
            if record.terminated or record.truncated:
                self._ended.append(self._open.pop(name))

    def note(self, batch: Batch, family: Family) -> None:
        """Add the learner's numbers on this update's turns."""
        at = {id(sample): row for row, sample in enumerate(batch.samples)} if self._fresh else {}
        for turns, place, reference in self._fresh:
            sample = reference()
            if sample is not None and id(sample) in at:
                notes = make_notes(batch, at[id(sample)], family)
                turns[place] = replace(turns[place], learner=notes)
        self._fresh = []

    def sample(self) -> tuple[np.ndarray, str] | None:
        """The newest picture [h, w, 3] uint8 before an ended episode's first reply, and that."""
        for turn in (episode[0] for episode in self._ended):
            for message in reversed(turn.messages):
                for part in reversed(list(message["content"])):
                    if part["type"] == "image":
                        return part["image"], turn.reply
        return None

    def end(self, update: int) -> Path | None:
        """Write the episodes that ended in the update; return the folder, if there is one."""
        if not self._ended:
            return None
        target = self.folder / f"update-{update:06d}"
        make_folder(self.folder)
        with written_whole(target, without=None) as part:
            writer = TrajectoryWriter(part, {**self.header, "update": update})
            for episode in self._ended:
                writer.write(episode)
        self._ended = []
        for old in recordings(self.folder)[: -self.keep]:
            remove_folder(old)
        return target

    def forget_later(self, update: int) -> None:
        """Delete what a lost future recorded after `update`, and half-written folders."""
        for leftover in self.folder.glob(".update-*"):
            discard(leftover)
        for path in recordings(self.folder):
            if int(path.name.partition("-")[2]) > update:
                remove_folder(path)


def make_notes(batch: Batch, row: int, family: Family) -> LearnerNotes:
    """Return the learner's numbers on a row of its batch."""
    sample, known = batch.samples[row], (batch.values, batch.advantages)
    numbers = (math.nan if x is None else float(x[row]) for x in known)
    value, advantage = (number if math.isfinite(number) else None for number in numbers)
    decode = partial(family.tokenizer.decode, clean_up_tokenization_spaces=False)
    tokens = tuple(decode([token]) for token in sample.ids.tolist())
    return LearnerNotes(value, advantage, tokens, tuple(sample.logp.tolist()))


def recordings(folder: Path) -> list[Path]:
    """The folders of recorded updates, oldest first."""
    return sorted(path for path in folder.glob("update-*") if path.is_dir())
