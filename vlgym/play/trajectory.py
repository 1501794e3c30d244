"""Episodes on disk: a folder that `datasets.load_dataset("imagefolder")` can read.

    run.json           environments with their arguments, hashes, parser, history; package versions
    metadata.jsonl     a line per turn, an episode's lines together; `file_name` is its image
    images/*.png       lossless, named by a hash of their pixels: equal ones are stored once

run.json and every line hold a checksum, and a picture has its name: damage is an error in reading.
"""

import errno
import functools
import hashlib
import json
import numbers
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import DecompressionBombError

from ..env import VLEnv
from ..env.arguments import describe_hint, fits, to_plain
from ..env.prompts import PromptBuilder
from ..env.rendering import decode_png, encode_png
from ..errors import GREATEST, TrajectoryError
from ..files import append_whole, is_cut, list_folder, make_folder, seal, sync, unseal, write_whole
from ..registry import get_registry
from ..registry.versions import find_distribution, hash_code, list_versions
from ..types import Image, LearnerNotes, Message, StepRecord, Usage
from .controls import map_pictures
from .remote import RemoteEnv

FORMAT = 4
READABLE = (3, 4)  # formats of runs that are read; format 3 had no checksums
SEED_RULE = "vlgym.episode_seed(environment id, split, episode number)"
HEADER, METADATA = "run.json", "metadata.jsonl"
_FIELDS = (
    "env_id", "episode", "seed", "turn", "text", "reply", "actions", "parse", "reward", "terminated",
    "truncated", "invalid", "success", "score",
)  # fmt: skip
SYNC_EVERY = 1.0  # seconds
NO_PICTURE = np.zeros((0, 0, 3), np.uint8)
MALFORMED = (ValueError, KeyError, TypeError, RecursionError)  # errors of `read_record`
FindImage = Callable[[str], Image]  # by the name of its file
_SINCE_FORMAT_3 = ("part", "repeat", "cut", "refused", "after")
_IF_ANY = ("level", "form", "point", "status", "reasoning")  # absent where they are the default


def describe_run(
    envs: Iterable[VLEnv], *, builder: PromptBuilder | None = None, policy: Any = None, **more: Any
) -> dict[str, Any]:
    """Return what identifies a run's numbers, as plain data.

    For each environment: class and distribution, all constructor arguments in force, hashes of spec
    and prompt, parser and history; and the versions of the core, the plugins in use and their needs.

    Args:
        envs: one environment or more of each id; those of one id are built alike.
        **more: whatever else belongs to the run; made plain by `to_plain`, `None` left out.

    Raises:
        TrajectoryError: two environments of one id are not built alike.
    """
    described: dict[str, Any] = {}
    for env in envs:
        name = env.vlgym_spec.id if env.vlgym_spec else type(env).__name__
        entry = {key: value for key, value in describe_env(env, builder).items() if key != "code"}
        if described.setdefault(name, entry) != entry:
            raise TrajectoryError(f"Two environments {name} have different arguments; write each to its own folder.")
    player = None if policy is None else describe_policy(policy)
    return assemble_run(described, environments=described, policy=player, **more)


def assemble_run(entries: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a run's record: its fields, and the versions behind entries of `describe_env`."""
    owners = {entry["distribution"] for entry in entries.values()} - {None}
    run = {"format": FORMAT, **fields, "versions": list_versions(owners)}
    return without_none(to_plain(run))


def describe_policy(policy: Any) -> dict[str, Any]:
    """Return a policy's entry in a run's record: its `describe()`, if it has one, else its name."""
    return policy.describe() if hasattr(policy, "describe") else {"name": policy.name}


def without_none(value: Any) -> Any:
    """Return plain data without the entries of dicts that are `None`."""
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


class TrajectoryWriter:
    """Appends episodes to a folder; a kill loses none that `write` has returned from.

    Lines are flushed to the disk once a second and by `sync`: a power cut may lose the last second's.
    Pictures are left to the system, which takes some seconds: there are too many.

    Args:
        folder: made if missing; must be empty or hold a run that `run` equals.
        run: from `describe_run`.

    Raises:
        TrajectoryError: the folder holds something else; nothing is overwritten.
    """

    def __init__(self, folder: Path | str, run: dict[str, Any]) -> None:
        self.folder = Path(folder)
        header = self.folder / HEADER
        if header.exists():
            recorded, plain = read_header(self.folder), json.loads(json.dumps(run))
            if recorded != plain:
                raise TrajectoryError(
                    f"{self.folder} holds the trajectories of another run; choose another folder. "
                    f"Different: {', '.join(find_differences(recorded, plain))}."
                )
        elif list_folder(self.folder):
            raise TrajectoryError(f"{self.folder} is not empty and holds no run.json; choose another folder.")

        # The header is whole before the first line.
        make_folder(self.folder / "images")
        if not header.exists():
            write_whole(header, encode_header(run))
        self._names: dict[int, str] = {}  # by `id`, in one episode: a history repeats its arrays
        self._synced = time.monotonic()

    def write(self, episode: list[StepRecord]) -> None:
        """Append one episode's records: images first, then the lines that name them."""
        self._names.clear()
        lines = [json.dumps(seal(self._write_row(record))) + "\n" for record in episode]
        append_whole(self.folder / METADATA, "".join(lines))
        if time.monotonic() - self._synced >= SYNC_EVERY:
            self.sync()

    def _write_row(self, record: StepRecord) -> dict[str, Any]:
        fields = {field: getattr(record, field) for field in (*_FIELDS, *_SINCE_FORMAT_3)}
        more = {field: getattr(record, field) for field in _IF_ANY}
        row = {**self._store(record.image), **fields}
        row |= {field: value for field, value in more.items() if value != getattr(StepRecord, field)}
        row |= {"span": record.span, "usage": record.usage and asdict(record.usage)}
        if record.learner is not None:
            row["learner"] = asdict(record.learner)
        prompt = [map_pictures(message, self._store) for message in record.messages]
        return {**row, "prompt": json.dumps(prompt)}

    def sync(self) -> None:
        """Flush all lines to the disk."""
        if (self.folder / METADATA).exists():
            sync(self.folder / METADATA)
        sync(self.folder)
        self._synced = time.monotonic()

    def _store(self, image: Image) -> dict[str, str]:
        """Write an image, unless an equal one is there, and return its name as an item."""
        if id(image) not in self._names:
            name = self._names[id(image)] = f"images/{hash_picture(image)}.png"
            if not (self.folder / name).exists():
                write_whole(self.folder / name, encode_png(image), durable=False)
        return {"file_name": self._names[id(image)]}


def read_trajectories(
    folder: Path | str, *, images: bool = True, unfinished: bool = True
) -> Iterator[list[StepRecord]]:
    """Yield episodes as they were written, images and prompts included.

    Args:
        images: `False` only looks for the files, which is many times faster: `image` is then empty,
            and image parts of `messages` hold `file_name`, relative to the folder.
        unfinished: `False` leaves out a line or an episode without its end: a kill leaves them.

    Raises:
        TrajectoryError: a line or an image is missing or damaged; the message names the line.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from vlgym.evaluation import plan_ids, run_evaluation
    >>> from vlgym.play.policies import OraclePolicy
    >>> with TemporaryDirectory() as folder:
    ...     _ = run_evaluation(plan_ids(["vlgym/NumberLine-v1"], episodes=2), OraclePolicy(), Path(folder))
    ...     print([episode[-1].success for episode in read_trajectories(folder)])
    [True, True]
    """
    return (episode for _, episode in read_numbered(Path(folder), images=images, unfinished=unfinished))


def read_numbered(folder: Path, *, images: bool, unfinished: bool) -> Iterator[tuple[int, list[StepRecord]]]:
    """As `read_trajectories`, each episode with the byte of metadata.jsonl after it."""
    path = folder / METADATA
    if not path.exists():
        raise TrajectoryError(f"{folder} holds no {METADATA}; is it a trajectory folder?")
    required, end, episode = is_sealed(read_header(folder)), 0, list[StepRecord]()

    @functools.cache
    def find(name: str) -> Image:
        place = _image_path(folder, name)
        if not images and not place.is_file():
            raise FileNotFoundError(errno.ENOENT, "No such image", str(place))
        return _read_image(place) if images else NO_PICTURE

    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not unfinished and is_cut(line):
                return
            try:
                row = unseal(json.loads(line.decode("utf-8")), required=required)
                record = read_record(row, find, images)
            except (*MALFORMED, OSError, SyntaxError, DecompressionBombError) as error:
                raise TrajectoryError(f"{path}, line {number}: {type(error).__name__}: {error}") from None
            end += len(line)
            episode.append(record)

            # An episode's last line says so; its pictures are forgotten, names of files are not.
            if record.terminated or record.truncated:
                yield end, episode
                episode = []
                if images:
                    find.cache_clear()
    if episode and unfinished:
        yield end, episode


def read_picture(folder: Path, name: str) -> tuple[bytes, Image]:
    """Return a picture's PNG and the picture, or raise `TrajectoryError`."""
    try:
        path = _image_path(folder, name)
        return path.read_bytes(), _read_image(path)
    except (ValueError, OSError, SyntaxError, DecompressionBombError) as error:
        raise TrajectoryError(f"{folder}, {name}: {type(error).__name__}: {error}") from None


def _read_image(path: Path) -> Any:
    image = decode_png(path.read_bytes())
    if hash_picture(image) != path.stem:
        raise ValueError(f"the picture {path.name} is not the one that was written; it is damaged")
    return image


def read_record(row: Mapping[str, Any], find: FindImage, images: bool = False) -> StepRecord:
    """Return the record that a line holds, with values of `StepRecord`'s types and finite numbers.

    `find` returns an image by its name; with `images` the prompt holds them, else their names.
    Where a value is missing or of another type, it raises an error of `MALFORMED`.
    """
    image = find(row["file_name"])
    messages = [_with_images(message, find, images) for message in json.loads(row["prompt"])]
    values = {name: row[name] for name in _FIELDS}
    values |= {name: row[name] for name in (*_SINCE_FORMAT_3, *_IF_ANY) if name in row}

    # JSON has lists and dicts for tuples and dataclasses.
    values["actions"] = tuple(values["actions"])
    if row.get("span") is not None:
        start, end = row["span"]
        values["span"] = (int(start), int(end))
    if isinstance(values.get("point"), list):
        values["point"] = tuple(values["point"])
    if row.get("usage") is not None:
        values["usage"] = Usage(**row["usage"])
    if (notes := row.get("learner")) is not None:
        lists = tuple(notes["tokens"]), tuple(notes["log_probs"])
        values["learner"] = LearnerNotes(notes["value"], notes["advantage"], *lists)

    # Whoever wrote the file, no other type goes further.
    check_record_values(values)
    for each in filter(None, (values.get("usage"), values.get("learner"))):
        check_record_values(vars(each), type(each))
    return StepRecord(messages=messages, image=image, **values)


def check_record_values(values: Mapping[str, Any], kind: type = StepRecord) -> None:
    """Raise `ValueError` for a value of another type than records have, or over `GREATEST`."""
    hints = _read_hints(kind)
    for name, value in values.items():
        hint = hints[name]
        if type(value) is hint and hint not in (int, float):
            continue  # which is quicker
        items = value if isinstance(value, tuple) else (value,)
        reals: list[Any] = [each for each in items if isinstance(each, numbers.Real)]
        finite = all(abs(each if isinstance(each, int) else float(each)) <= GREATEST for each in reals)
        if not finite or not fits(value, hint):
            raise ValueError(f"{name} is {value!r:.80}, not {describe_hint(hint)}")


@functools.cache
def _read_hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def describe_env(env: VLEnv, builder: PromptBuilder | None = None) -> dict[str, Any]:
    """Return an environment's entry of `describe_run`."""
    if isinstance(env, RemoteEnv):
        return env.describe(*(() if builder is None else (builder.history_turns, builder.history_images)))
    spec, parser = env.vlgym_spec, env.parser
    layout = PromptBuilder.for_env(env, builder)
    owner = get_registry().owner.get(spec.id) if spec else None

    # A parser's public attributes are its settings: they change how a reply is read.
    names = [name for name in dir(parser) if not name.startswith("_")]
    public = {name: getattr(parser, name) for name in names if name not in ("name", "version")}
    settings = {name: value for name, value in public.items() if not callable(value)}
    return {
        "class": to_plain(type(env)),
        "distribution": owner or find_distribution(type(env).__module__),
        "arguments": env.arguments,
        "code": {name.partition(".")[0]: hash_code(name) for name in ("vlgym", type(env).__module__)},
        "spec_hash": spec.digest() if spec else None,
        "prompt_version": env.prompt.version,
        "prompt_hash": env.prompt.digest(parser.describe()),
        "parser": parser.name,
        "parser_version": parser.version,
        "reply_ends": "with the first action" if callable(getattr(parser, "end", None)) else "with the turn",
        "parser_settings": to_plain(settings) or None,
        "history": {"turns": layout.history_turns, "images": layout.history_images},
    }


def hash_picture(image: Image) -> str:
    """Return the name of a picture's file, without its suffix."""
    return hashlib.sha256(f"{image.shape}".encode() + np.ascontiguousarray(image).tobytes()).hexdigest()[:20]


def encode_header(run: dict[str, Any]) -> str:
    """Return the text of a run.json."""
    return json.dumps(seal(run), indent=2) + "\n"


def is_sealed(header: Any) -> bool:
    """True if a run.json's format has checksums."""
    number = header.get("format") if isinstance(header, dict) else None
    return isinstance(number, int) and number > READABLE[0]


def read_header(folder: Path) -> Any:
    """Return a folder's run.json without its checksum, or raise `TrajectoryError`."""
    path = folder / HEADER
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        return unseal(header, required=is_sealed(header)) if isinstance(header, dict) else header
    except (ValueError, OSError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise TrajectoryError(f"{path} cannot be read ({why}); choose another folder.") from None


def _image_path(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if folder.resolve() not in path.parents:
        raise ValueError(f"file_name {name!r} points outside the folder")
    return path


def _with_images(message: dict[str, Any], find: FindImage, images: bool) -> Message:
    content = []
    for part in message["content"]:
        if part["type"] == "image":
            image = find(part["file_name"])
            part = {"type": "image", "image": image} if images else part
        elif not isinstance(part["text"], str):
            raise ValueError("a part of the prompt is no text")
        content.append(part)
    return {"role": message["role"], "content": content}


def find_differences(recorded: Any, run: Any, place: str = "") -> list[str]:
    """Return where two headers differ, as dotted names; the first five."""
    if not (isinstance(recorded, dict) and isinstance(run, dict)):
        return [] if recorded == run else [place or "all of it"]
    places = {name: f"{place}.{name}" if place else name for name in sorted({*recorded, *run})}
    inner = [find_differences(recorded.get(name), run.get(name), where) for name, where in places.items()]
    return [line for lines in inner for line in lines][:5]
