"""Episodes of training, kept for a person to look at: prompt, picture, reply, action and reward of every turn.

After a given number of updates the next episode to begin in each environment id is kept, from its first turn to its
last, however many updates it takes. Each turn has the learner's value, advantage and log-probabilities. An episode that
ended in an update is written when that update is over, as a separate trajectory folder (`vlgym/trajectory.py`), whole
or not at all. Nothing is drawn, asked or changed: training has the same numbers with and without. This is not the
learner's memory (`replay.py`), and not an evaluation.
"""

from __future__ import annotations

import math
import os
import shutil
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from vlgym.durable import place_folder
from vlgym.env_failures import ENV_ERROR, EnvFailures
from vlgym.rollout import Runner
from vlgym.trajectory import TrajectoryWriter
from vlgym.types import LearnerNotes, Reply, StepRecord

from ..models.family import Family
from ..runs.distributed import World
from .batch import Batch
from .config import RunConfig
from .environments import Environments

FOLDER = "episodes"
_NAMED = ("format", "title", "environments", "versions", "policy")


class EpisodeRecorder:
    """Picks the episodes and writes them.

    Args:
        folder: of all recordings; made with the first one.
        record: of the run; what it says of environments and policy goes into each recording.
        every: updates from one recording to the next; 0 for none.
        keep: how many folders remain; older ones are deleted.
    """

    def __init__(self, folder: Path, record: Mapping[str, Any], *, every: int, keep: int) -> None:
        self.folder, self.every, self.keep = folder, every, keep
        self.header = {name: record[name] for name in _NAMED if name in record} | {"split": "train"}
        self._slots: dict[str, int] = {}  # environment id -> the first environment of it
        self._asked: set[str] | None = None  # ids that this update has asked for; None where it asks for none
        self._wanted: set[str] = set()
        self._open: dict[str, list[StepRecord]] = {}
        self._ended: list[list[StepRecord]] = []
        # Turns of this update: their episode, their place in it, and the sample, which the recorder does not keep.
        self._fresh: list[tuple[list[StepRecord], int, weakref.ref[Any]]] = []

    def begin(self, update: int) -> None:
        """Say which update comes, from 1: the first one is recorded."""
        due = self.every and (update - 1) % self.every == 0
        self._asked = set() if due else None
        self._fresh = []

    def see(self, row: Iterable[tuple[int, StepRecord]]) -> None:
        """Look at the records of one step, each with the number of its environment."""
        if not self.every:
            return
        for slot, record in row:
            name = record.env_id
            if self._slots.setdefault(name, slot) != slot:
                continue
            if self._asked is not None and name not in self._asked:
                self._asked.add(name)
                self._wanted |= {name} - self._open.keys()
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
        """Add what the learner made of this update's turns.

        Args:
            batch: of the update; turns whose samples are not in it get nothing.
            family: tells the text of a token.
        """
        at = {id(sample): index for index, sample in enumerate(batch.samples)} if self._fresh else {}
        for turns, place, reference in self._fresh:
            sample = reference()
            if sample is not None and id(sample) in at:
                turns[place] = replace(turns[place], learner=make_notes(batch, at[id(sample)], family))
        self._fresh = []

    def end(self, update: int) -> Path | None:
        """Write what ended in an update that is over now; return the folder, if there is one.

        Raises:
            OSError: the disk is full, or may not be written to.
        """
        if not self._ended:
            return None
        target = self.folder / f"update-{update:06d}"
        part = self.folder / f".{target.name}.part"
        self.folder.mkdir(exist_ok=True)
        try:
            writer = TrajectoryWriter(part, {**self.header, "update": update})
            for episode in self._ended:
                writer.write(episode)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)  # half of one fills a full disk
            raise
        place_folder(part, target)
        self._ended = []
        for old in recordings(self.folder)[: -self.keep]:
            _remove(old)
        return target

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """JSON-able: which episodes are open and what was answered in them so far."""
        opened = {
            name: {
                "episode": turns[0].episode,
                "replies": [[turn.reply, turn.cut] for turn in turns],
                "learner": [turn.learner and asdict(turn.learner) for turn in turns],
            }
            for name, turns in self._open.items()
        }
        return {"slots": self._slots, "wanted": sorted(self._wanted), "open": opened}

    def set_state(self, state: Mapping[str, Any] | None, update: int, envs: Environments) -> None:
        """Go on after `update`: delete what a lost future recorded, and play the open episodes up to where they stand.

        That is exact because an episode is a function of its seed and the replies.

        Args:
            state: of `get_state`; None where an older version saved none.
            update: updates made so far.
            envs: the run's.
        """
        for leftover in self.folder.glob(".update-*"):
            shutil.rmtree(leftover)
        for path in recordings(self.folder):
            if int(path.name.partition("-")[2]) > update:
                _remove(path)
        if not (state and self.every):
            return
        self._slots, self._wanted = dict(state["slots"]), set(state["wanted"])
        for name, opened in state["open"].items():
            self._open[name] = self._play_up(self._slots[name], opened, envs)

    def _play_up(self, slot: int, opened: Mapping[str, Any], envs: Environments) -> list[StepRecord]:
        """The turns of an open episode, from its first one again where an environment raises."""
        runner = Runner(
            [envs.make(slot)], split="train", first_episode=opened["episode"], builder=envs.builder,
            remake=lambda _: envs.make(slot), again=True, failures=EnvFailures(envs.failures.append),
        )  # fmt: skip
        turns: list[StepRecord] = []
        try:
            while len(turns) < len(opened["replies"]):
                text, cut = opened["replies"][len(turns)]
                (turn,) = runner.advance(runner.turns(), [Reply(text, cut=cut)])
                turns = [] if turn.parse == ENV_ERROR else [*turns, replace(turn, final_messages=None)]
        finally:
            runner.close()
        notes = opened.get("learner") or [None] * len(turns)
        return [
            replace(turn, learner=said and LearnerNotes(**{name: _frozen(item) for name, item in said.items()}))
            for turn, said in zip(turns, notes, strict=True)
        ]


def make_notes(batch: Batch, row: int, family: Family) -> LearnerNotes:
    """Return the learner's numbers on a row of its batch."""
    sample = batch.samples[row]
    decode = family.tokenizer.decode
    return LearnerNotes(
        None if batch.values is None else _finite(batch.values[row]),
        _finite(batch.advantages[row]),
        tuple(decode([token], clean_up_tokenization_spaces=False) for token in sample.ids.tolist()),
        tuple(sample.logp.tolist()),
    )


def make_recorder(config: RunConfig, out: Path, record: Mapping[str, Any], world: World) -> EpisodeRecorder:
    """The recorder of a run in `out`, whose record is given; only the first process records."""
    every = config.record_every if world.first else 0
    return EpisodeRecorder(out / FOLDER, record, every=every, keep=config.record_keep)


def recordings(folder: Path) -> list[Path]:
    """The folders of recorded updates, oldest first."""
    return sorted(path for path in folder.glob("update-*") if path.is_dir())


def _finite(number: Tensor) -> float | None:
    return float(number) if math.isfinite(float(number)) else None


def _frozen(item: Any) -> Any:
    """A list of JSON as the tuple that it was."""
    return tuple(item) if isinstance(item, list) else item


def _remove(folder: Path) -> None:
    """Delete a recording; a kill leaves no half of it that looks whole."""
    hidden = folder.with_name(f".{folder.name}.gone")
    os.replace(folder, hidden)
    shutil.rmtree(hidden)
