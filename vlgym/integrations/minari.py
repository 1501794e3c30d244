"""Recorded episodes as a Minari data set: observations (picture and text), replies as actions, rewards, endings.

A record has the observation before each reply; Minari wants the one after the last, too. So every episode
is played again from its seed and its replies, which must give the same turns.
"""

from __future__ import annotations

import contextlib
import copy
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gymnasium

from ..errors import TrajectoryError
from ..parsers import check_named
from ..play.replay import replay
from ..play.trajectory import read_header
from ..registry.making import make
from ..types import StepRecord
from .parquet import StoredEpisode, encodable, need

DATA_SET = "vlgym/records-v0"  # name of the data set below its folder
PLACE = "MINARI_DATASETS_PATH"
CHUNK = 16  # episodes that are written at once


def write_minari(episodes: Iterable[StoredEpisode], out: Path) -> int:
    """Write the episodes of one environment as the Minari data set `DATA_SET` below `out`.

    Load it with `MINARI_DATASETS_PATH=OUT` and `minari.load_dataset("vlgym/records-v0")`. Actions are the
    replies.

    Returns:
        the number of turns.

    Raises:
        TrajectoryError: the records are of several environments.
        FailedError: the environment does not play them again.
        UserError: the environment cannot be made.
        NotInstalledError: `minari` is missing.
    """
    minari = need("minari")
    sink: _Sink | None = None
    turns = 0
    try:
        for folder, episode in episodes:
            # The first episode's environment is that of all.
            source = _describe(folder, episode[0])
            if sink is None:
                sink = _Sink(minari, *source, out)
            if source != sink.source:
                raise TrajectoryError(
                    f"{folder} holds episodes of {source[0]} and of {sink.source[0]}, or with other "
                    "arguments; a Minari data set has one environment: export each folder by itself."
                )
            sink.add(episode)
            turns += len(episode)
        if sink is not None:
            sink.write()
    finally:
        if sink is not None:
            sink.env.close()
    return turns


class _Sink:
    """Plays episodes again and writes them, `CHUNK` at a time."""

    def __init__(self, minari: Any, env_id: str, arguments: dict[str, Any], out: Path) -> None:
        self.minari, self.source, self.out = minari, (env_id, arguments), out
        self.env = make(env_id, **arguments)
        self.dataset: Any = None
        self.buffers: list[Any] = []
        self.count = 0

    def add(self, episode: list[StepRecord]) -> None:
        images, texts = replay(self.env, episode)
        buffer = self.minari.data_collector.EpisodeBuffer(
            id=self.count, seed=episode[0].seed, observations={"image": images, "text": texts},
            actions=[encodable(record.reply) for record in episode],
            rewards=[record.reward for record in episode],
            terminations=[record.terminated for record in episode],
            truncations=[record.truncated for record in episode],
            infos={"success": [False, *(record.success for record in episode)]},
        )  # fmt: skip
        self.buffers.append(buffer)
        self.count += 1
        if len(self.buffers) >= CHUNK:
            self.write()

    def write(self) -> None:
        if self.dataset is None:
            self.dataset = self._create()
        elif self.buffers:
            self.dataset.update_dataset_from_buffer(self.buffers)
        self.buffers = []

    def _create(self) -> Any:
        env_id, arguments = self.source
        spec = copy.deepcopy(gymnasium.spec(env_id))
        spec.kwargs.update(arguments)
        with _data_sets_in(self.out), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about authors, who are not known here
            return self.minari.create_dataset_from_buffers(
                DATA_SET, self.buffers, env=spec, observation_space=self.env.observation_space,
                action_space=self.env.action_space, description=f"Recorded episodes of {env_id}",
                data_format="arrow", jpeg_encoding=False,
            )  # fmt: skip


@contextlib.contextmanager
def _data_sets_in(folder: Path) -> Iterator[None]:
    """Set Minari's folder of data sets."""
    before = os.environ.get(PLACE)
    os.environ[PLACE] = str(folder.absolute())  # Minari joins a relative one twice
    try:
        yield
    finally:
        if before is None:
            del os.environ[PLACE]
        else:
            os.environ[PLACE] = before


def _describe(folder: Path, record: StepRecord) -> tuple[str, dict[str, Any]]:
    """Return the id and the arguments of an episode's environment."""
    header = read_header(folder)
    parts = header.get("parts") or header.get("environments") or {}
    entry = parts.get(record.part) or parts.get(record.env_id)
    if not isinstance(entry, dict) or not isinstance(entry.get("arguments"), dict):
        raise TrajectoryError(f"{folder} does not say with which arguments {record.env_id} was made.")
    arguments = {**entry["arguments"], "parser": entry["parser"]}
    return record.env_id, check_named(arguments, str(folder))
