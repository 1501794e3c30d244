"""Episodes on disk: a folder that `datasets.load_dataset("imagefolder")` can read, and that evaluation and imitation
read back.

    run.json           what was run: environment ids, spec, prompt and parser hashes, package versions
    metadata.jsonl     one line per turn; `file_name` points at the turn's image
    images/*.png       lossless
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from .env import VLEnv
from .errors import TrajectoryError
from .rendering import decode_png, encode_png
from .types import Message, StepRecord

FORMAT = 1
_FIELDS = (
    "env_id", "episode", "seed", "turn", "text", "reply", "actions", "parse", "reward", "terminated", "truncated",
    "invalid", "success", "score",
)  # fmt: skip


def describe_run(envs: Iterable[VLEnv], **more: Any) -> dict[str, Any]:
    """Return what identifies a run's numbers: hashes of spec, prompt and parser for each environment, and package
    versions."""
    described = {}
    for env in envs:
        name = env.vlgym_spec.id if env.vlgym_spec else type(env).__name__
        described[name] = {
            "spec_hash": env.vlgym_spec.digest() if env.vlgym_spec else None,
            "prompt_version": env.prompt.version,
            "prompt_hash": env.prompt.digest(env.parser.describe()),
            "parser": env.parser.name,
            "parser_version": env.parser.version,
            "invalid_action": env.invalid_action,
            "invalid_penalty": env.invalid_penalty,
            "max_turns": env.max_turns,
        }
    versions = {"python": platform.python_version()}
    for package in ("vlgym", "gymnasium", "numpy", "pillow"):
        versions[package] = metadata.version(package)
    return {"format": FORMAT, "environments": described, "versions": versions, **more}


class TrajectoryWriter:
    """Appends episodes to a folder; each episode is on disk when `write` returns.

    Args:
        folder: made if missing; must be empty or hold a run that `run` equals.
        run: from `describe_run`.

    Raises:
        TrajectoryError: the folder holds something else; nothing is overwritten.
    """

    def __init__(self, folder: Path | str, run: dict[str, Any]) -> None:
        self.folder = Path(folder)
        header = self.folder / "run.json"
        if header.exists():
            if _read_header(header) != json.loads(json.dumps(run)):
                raise TrajectoryError(f"{self.folder} holds the trajectories of another run; choose another folder.")
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise TrajectoryError(f"{self.folder} is not empty and holds no run.json; choose another folder.")
        (self.folder / "images").mkdir(parents=True, exist_ok=True)
        header.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")

    def write(self, episode: list[StepRecord]) -> None:
        """Append one episode's records: images first, then the lines that name them."""
        names: dict[int, str] = {}
        lines = []
        for record in episode:
            slug = record.env_id.replace("/", "_")
            name = f"images/{slug}_e{record.episode:06d}_t{record.turn:04d}.png"
            names[id(record.image)] = name
            (self.folder / name).write_bytes(encode_png(record.image))
            row = {"file_name": name, **{field: getattr(record, field) for field in _FIELDS}}
            row["actions"] = list(record.actions)
            row["prompt"] = json.dumps([_without_images(message, names) for message in record.messages])
            lines.append(json.dumps(row))
        with (self.folder / "metadata.jsonl").open("a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))


def read_trajectories(folder: Path | str) -> Iterator[list[StepRecord]]:
    """Yield episodes as they were written, images and prompts included.

    Raises:
        TrajectoryError: a line or an image is missing or malformed; the message names the line.
    """
    folder = Path(folder)
    path = folder / "metadata.jsonl"
    if not path.exists():
        raise TrajectoryError(f"{folder} holds no metadata.jsonl; is it a trajectory folder?")
    episode: list[StepRecord] = []
    images: dict[str, Any] = {}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                image = decode_png(_image_path(folder, row["file_name"]).read_bytes())
                images[row["file_name"]] = image
                messages = [_with_images(message, images) for message in json.loads(row["prompt"])]
                values = {name: row[name] for name in _FIELDS}
                values["actions"] = tuple(values["actions"])
                record = StepRecord(messages=messages, image=image, **values)
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise TrajectoryError(f"{path}, line {number}: {type(error).__name__}: {error}") from None
            episode.append(record)
            if record.terminated or record.truncated:
                yield episode
                episode, images = [], {}
    if episode:
        yield episode


def _read_header(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise TrajectoryError(
            f"{path} cannot be read ({type(error).__name__}: {error}); choose another folder."
        ) from None


def _image_path(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if folder.resolve() not in path.parents:
        raise ValueError(f"file_name {name!r} points outside the folder")
    return path


def _without_images(message: Message, names: dict[int, str]) -> dict[str, Any]:
    content = [
        {"type": "image", "file_name": names[id(part["image"])]} if part["type"] == "image" else part
        for part in message["content"]
    ]
    return {"role": message["role"], "content": content}


def _with_images(message: dict[str, Any], images: dict[str, Any]) -> Message:
    content = [
        {"type": "image", "image": images[part["file_name"]]} if part["type"] == "image" else part
        for part in message["content"]
    ]
    return {"role": message["role"], "content": content}
