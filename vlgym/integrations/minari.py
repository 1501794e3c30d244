"""Recorded episodes as a Minari data set, with replies as actions.

A record has the observation before each reply; Minari wants the one after the last, too. So every
episode is played again from its seed and its replies, which must give the same turns.
"""

import contextlib
import copy
import os
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import gymnasium

from ..env import VLEnv
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

    Load it with `MINARI_DATASETS_PATH=OUT` and `minari.load_dataset("vlgym/records-v0")`. Actions
    are the replies. Returns the number of turns.

    Raises:
        TrajectoryError: the records are of several environments.
        FailedError: the environment does not play them again.
        UserError: the environment cannot be made.
        NotInstalledError: `minari` is missing.
    """
    minari = need("minari")
    rows = iter(episodes)
    if (first := next(rows, None)) is None:
        return 0

    # The first episode's environment is that of all.
    source = env_id, arguments = _describe(first[0], first[1][0])
    env, dataset, count, turns = make(env_id, **arguments), None, 0, 0
    rows = chain([first], rows)
    try:
        while batch := list(islice(rows, CHUNK)):
            for folder, episode in batch:
                if (other := _describe(folder, episode[0])) != source:
                    raise TrajectoryError(
                        f"{folder} holds episodes of {other[0]} and of {env_id}, or with other "
                        "arguments; a Minari data set has one environment: export each folder by itself."
                    )
            buffers = [_play(minari, env, count + index, episode) for index, (_, episode) in enumerate(batch)]
            if dataset is None:
                dataset = _create(minari, env, source, buffers, out)
            else:
                dataset.update_dataset_from_buffer(buffers)
            count += len(batch)
            turns += sum(len(episode) for _, episode in batch)
    finally:
        env.close()
    return turns


def _play(minari: Any, env: VLEnv, number: int, episode: list[StepRecord]) -> Any:
    """Play an episode again; return its buffer."""
    images, texts = replay(env, episode)
    return minari.data_collector.EpisodeBuffer(
        id=number, seed=episode[0].seed, observations={"image": images, "text": texts},
        actions=[encodable(record.reply) for record in episode],
        rewards=[record.reward for record in episode],
        terminations=[record.terminated for record in episode],
        truncations=[record.truncated for record in episode],
        infos={"success": [False, *(record.success for record in episode)]},
    )  # fmt: skip


def _create(minari: Any, env: VLEnv, source: tuple[str, dict[str, Any]], buffers: list[Any], out: Path) -> Any:
    env_id, arguments = source
    spec = copy.deepcopy(gymnasium.spec(env_id))
    spec.kwargs.update(arguments)
    with _data_sets_in(out), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about authors, who are not known here
        return minari.create_dataset_from_buffers(
            DATA_SET, buffers, env=spec, observation_space=env.observation_space,
            action_space=env.action_space, description=f"Recorded episodes of {env_id}",
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
