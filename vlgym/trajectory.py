"""Episodes on disk: a folder that `datasets.load_dataset("imagefolder")` can read, and that evaluation and imitation
read back.

    run.json           what was run: environments with all their arguments, hashes, parser, history; package versions
    metadata.jsonl     one line per turn; `file_name` points at the turn's image
    images/*.png       lossless
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .arguments import to_plain
from .env import VLEnv
from .errors import TrajectoryError
from .prompts import PromptBuilder
from .registry import get_registry
from .rendering import decode_png, encode_png
from .types import Message, StepRecord
from .versions import find_distribution, list_versions

FORMAT = 2
SEED_RULE = "vlgym.seeding.episode_seed(environment id, split, episode number)"
_NAMES = ("name", "version")
_FIELDS = (
    "env_id", "episode", "seed", "turn", "text", "reply", "actions", "parse", "reward", "terminated", "truncated",
    "invalid", "success", "score",
)  # fmt: skip


def describe_run(
    envs: Iterable[VLEnv],
    *,
    builder: PromptBuilder | None = None,
    policy: Any = None,
    split: str | None = None,
    episodes: tuple[int, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return what identifies a run's numbers, as plain data in which nothing is null that has a value.

    For each environment: its class and distribution, all constructor arguments in force, hashes of spec and prompt, the
    parser and the history setting; and the versions of the core, of the plugins in use and of what these require.

    Args:
        envs: one environment or more of each id; those of one id are built alike.
        builder: prompt layout; by default each environment's own.
        policy: who answers; what its `describe()` says is recorded, if it has one, else its name.
        split: split of the episodes.
        episodes: number of the first episode, and of the one after the last.
        **more: whatever else belongs to the run; made plain by `vlgym.arguments.to_plain`, `None` left out.

    Raises:
        TrajectoryError: two environments of one id are not built alike.
    """
    described: dict[str, Any] = {}
    owners = set()
    for env in envs:
        name = env.vlgym_spec.id if env.vlgym_spec else type(env).__name__
        entry = _describe_env(env, builder)
        if described.setdefault(name, entry) != entry:
            raise TrajectoryError(f"Two environments {name} have different arguments; write each to its own folder.")
        owners.add(entry["distribution"])
    run: dict[str, Any] = {"environments": described, "versions": list_versions(owners - {None}), "split": split}
    if policy is not None:
        run["policy"] = policy.describe() if hasattr(policy, "describe") else {"name": policy.name}
    if episodes is not None:
        run["episodes"] = {"first": episodes[0], "end": episodes[1], "seeds": SEED_RULE}
    return without_none(to_plain({"format": FORMAT, **run, **more}))


def without_none(value: Any) -> Any:
    """Return plain data without the entries of dicts that are `None`: what is left out has no value."""
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


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
            held = _read_header(header)
            if held != json.loads(json.dumps(run)):
                raise TrajectoryError(
                    f"{self.folder} holds the trajectories of another run; choose another folder. "
                    f"Different: {', '.join(_find_differences(held, json.loads(json.dumps(run))))}."
                )
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


def _describe_env(env: VLEnv, builder: PromptBuilder | None) -> dict[str, Any]:
    spec, parser = env.vlgym_spec, env.parser
    layout = builder or PromptBuilder.for_spec(spec)
    public = {name: getattr(parser, name) for name in dir(parser) if not name.startswith("_")}
    settings = {name: value for name, value in public.items() if name not in _NAMES and not callable(value)}
    owner = get_registry().owner.get(spec.id) if spec else None
    return {
        "class": to_plain(type(env)),
        "distribution": owner or find_distribution(type(env).__module__),
        "arguments": env.arguments,
        "spec_hash": spec.digest() if spec else None,
        "prompt_version": env.prompt.version,
        "prompt_hash": env.prompt.digest(parser.describe()),
        "parser": parser.name,
        "parser_version": parser.version,
        "reply_ends": "with the first action" if callable(getattr(parser, "end", None)) else "with the turn",
        "parser_settings": to_plain(settings) or None,
        "history": {"turns": layout.history_turns, "images": layout.history_images},
    }


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


def _find_differences(held: Any, run: Any, place: str = "") -> list[str]:
    """Where two headers differ, as dotted names; the first five."""
    if not (isinstance(held, dict) and isinstance(run, dict)):
        return [] if held == run else [place or "all of it"]
    names = sorted({*held, *run})
    inner = [_find_differences(held.get(name), run.get(name), f"{place}.{name}" if place else name) for name in names]
    return [line for lines in inner for line in lines][:5]
