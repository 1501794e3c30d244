"""Recorded turns as Parquet files that `datasets.load_dataset(FOLDER)` reads, pictures included.

Two layouts: `hf` has one row per turn with its whole record; `sft` has one chat per turn for TRL's
SFTTrainer (`prompt`, `completion`, `images`).
"""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import TrajectoryError
from ..play.trajectory import read_picture
from ..registry.installing import import_extra
from ..types import StepRecord

SHARD, ROW_GROUP = 5000, 100  # rows of a file, and rows that are written at once

COLUMN_TYPES = {
    "env_id": "string", "episode": "int64", "seed": "uint64", "turn": "int64", "text": "string",
    "reply": "string", "parse": "string", "reward": "float64", "terminated": "bool", "truncated": "bool",
    "invalid": "bool",
}  # fmt: skip

StoredEpisode = tuple[Path, list[StepRecord]]  # the folder of the records, and the turns of one episode

need = partial(import_extra, extra="export", user="This export")


def write_turns(episodes: Iterable[StoredEpisode], out: Path) -> int:
    """Write one row per turn into an empty folder: prompt, reply and outcome; return their number.

    Raises:
        TrajectoryError: a picture is missing or damaged.
        NotInstalledError: `datasets` is missing.
    """
    datasets = need("datasets")
    text, number, flag = (datasets.Value(kind) for kind in ("string", "float64", "bool"))
    columns: dict[str, Any] = {name: datasets.Value(kind) for name, kind in COLUMN_TYPES.items()}
    columns |= {"actions": datasets.List(text), "success": flag, "score": number, "prompt": text}
    columns["images"] = datasets.List(datasets.Image())
    return _write(datasets.Features(columns), map(_row_of_turn, _turns(episodes)), out)


def write_chats(episodes: Iterable[StoredEpisode], out: Path) -> int:
    """Write one chat per turn, the reply as the target; return their number. Raises as `write_turns`.

    Turns whose reply could not be read, or was no legal action, are left out.
    """
    datasets = need("datasets")
    text = datasets.Value("string")
    message = {"role": text, "content": datasets.List({"type": text, "text": text})}
    columns = dict.fromkeys(("prompt", "completion"), datasets.List(message))
    columns["images"] = datasets.List(datasets.Image())
    chats = (_row_of_chat(folder, record) for folder, record in _turns(episodes) if not record.invalid)
    return _write(datasets.Features(columns), chats, out)


def _turns(episodes: Iterable[StoredEpisode]) -> Iterator[tuple[Path, StepRecord]]:
    for folder, episode in episodes:
        for record in episode:
            yield folder, record


def _row_of_turn(turn: tuple[Path, StepRecord]) -> dict[str, Any]:
    folder, record = turn
    if record.seed is not None and record.seed >= 2**64:
        raise TrajectoryError(f"{folder}: the seed {record.seed} does not fit into 64 bits.")
    messages, images = _split(folder, record)
    row = {name: getattr(record, name) for name in COLUMN_TYPES}
    row |= {"actions": list(record.actions), "success": record.success, "score": record.score}
    return {**row, "prompt": json.dumps(messages), "images": images}


def _row_of_chat(folder: Path, record: StepRecord) -> dict[str, Any]:
    messages, images = _split(folder, record)
    reply = {"role": "assistant", "content": [{"type": "text", "text": record.reply}]}
    return {"prompt": messages, "completion": [reply], "images": images}


def _split(folder: Path, record: StepRecord) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the prompt with a mark for each picture, and the pictures in their order."""
    messages, images = [], []
    for message in record.messages:
        content = []
        for part in message["content"]:
            if part["type"] == "image":
                images.append({"bytes": read_picture(folder, part["file_name"])[0], "path": None})
                content.append({"type": "image", "text": ""})
            else:
                content.append({"type": "text", "text": part["text"]})
        messages.append({"role": message["role"], "content": content})
    return messages, images


def _write(features: Any, rows: Iterable[dict[str, Any]], out: Path) -> int:
    """Write the rows to `out/data/train-NNNNN.parquet`, `SHARD` in each."""
    pyarrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    schema = features.arrow_schema  # holds what `datasets` needs to know of the columns
    (out / "data").mkdir()
    rows, count = map(encodable, rows), 0
    while group := list(islice(rows, ROW_GROUP)):
        path, end = out / "data" / f"train-{count // SHARD:05}.parquet", count + SHARD
        with parquet.ParquetWriter(path, schema) as writer:
            while group:
                writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
                count += len(group)
                group = list(islice(rows, min(ROW_GROUP, end - count)))
    return count


def encodable(value: Any) -> Any:
    """Return a row with `?` for lone surrogates, which UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [encodable(item) for item in value]
    return {name: encodable(item) for name, item in value.items()} if isinstance(value, dict) else value
