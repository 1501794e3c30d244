"""Folders of models and of adapters: the files next to the weights. Read as data, never run.

They hold the limits of a model's training, its processor's settings (the library's classes for Qwen
need torchvision, because they also read videos), and its chat template.

The template comes with the checkpoint, so it runs in the library's sandbox, jinja2's
`ImmutableSandboxedEnvironment`. Only special tokens that the template itself writes become special
tokens: where texts, alone or in a row, could spell one, its first character is exchanged for a
private one before the template sees it, and put back into the pieces.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vlgym.errors import UserError, check_options, check_writable
from vlgym.files import CHECKSUMS, check_files, list_folder, write_whole
from vlgym.play.trajectory import check_record_values

# ---- folders ------------------------------------------------------------------------------------

FILE = "vlgym.json"
CARD_FILE = "README.md"  # licence and source of a built model; config.json holds it as `vlgym_card`
EVALUATION = "evaluation.json"  # the scores by which a model was chosen
MOST_TEMPERATURE = 100.0
NEW_TOKENS = 128  # longest reply where nothing else says


def check_whole(folder: Path) -> None:
    """Raise `UserError` where a file differs from its checksum."""
    if (folder / CHECKSUMS).is_file():
        try:
            check_files(folder)
        except ValueError as error:
            raise UserError(
                f"--model {folder} is damaged: {error}. Save the model again; if you changed that file yourself, "
                f"delete {CHECKSUMS} there."
            ) from None


def write_notes(folder: Path, notes: Mapping[str, Any]) -> None:
    """Write JSON data into a folder: the name of each file -> its data."""
    for name, data in notes.items():
        write_whole(folder / name, json.dumps(data, indent=2, default=str))


def check_replaceable(folder: Path, name: str, files: Sequence[str], config: str, what: str) -> None:
    """Raise `UserError` unless the folder of the option `name` is new, empty, or holds `config` and
    nothing but files by the patterns `files`; `what` is its kind in words."""
    check_writable(name, folder)
    names = [path.name for path in list_folder(folder)]
    strange = [file for file in names if not any(fnmatch(file, part) for part in files)]
    if strange or (names and config not in names) or folder.is_file():
        raise UserError(
            f"{name} {folder} holds {', '.join(strange[:3]) or 'files'}, which is no {what}'s; choose a new or empty "
            f"folder for the {what}."
        )


# ---- limits of a training ----------------------------------------------------------------------


@dataclass(frozen=True)
class TrainedLimits:
    """Limits and prompt layout of a model's training, by the names of its options."""

    max_new_tokens: int | None = None
    image_tokens: int | None = None
    history_turns: int | None = None
    history_images: int | None = None
    parser: str | None = None
    system: str | None = None
    temperature: float | None = None

    def note(self) -> dict[str, Any]:
        """Name and content of the file, for a model's folder."""
        return {FILE: asdict(self)}


def read_limits(model: str) -> TrainedLimits:
    """Read the limits of a saved model; all are None without the file."""
    path = Path(model) / FILE
    if not path.is_file():
        return TrainedLimits()
    try:
        limits = TrainedLimits(**json.loads(path.read_text()))
        check_record_values(asdict(limits), TrainedLimits)
        counts = ("max_new_tokens", "image_tokens", "history_turns", "history_images")
        check_options(limits, *counts, least=0)
        check_options(limits, "temperature", above=0, most=MOST_TEMPERATURE)
        return limits
    except (OSError, ValueError, TypeError, UserError) as error:
        raise UserError(f"{path} cannot be read ({error}). Delete it to go on with the defaults.") from None


# ---- processor ---------------------------------------------------------------------------------

IMAGE_SETTINGS, VIDEO_SETTINGS = "preprocessor_config.json", "video_preprocessor_config.json"
PROCESSOR_SETTINGS, INDEX = "processor_config.json", "model.safetensors.index.json"
SETTINGS = (
    "config.json", "tokenizer_config.json", IMAGE_SETTINGS, VIDEO_SETTINGS, PROCESSOR_SETTINGS,
    INDEX,
)  # fmt: skip
LIBRARY_PIXELS = (56 * 56, 28 * 28 * 1280)  # the library's bounds for a saved Qwen processor without
PIXEL_STEPS = ("do_resize", "do_rescale", "do_normalize")  # our engine always takes them


@dataclass(frozen=True)
class Processor:
    """The settings of a saved processor; empty where none is saved with the model."""

    images: Mapping[str, Any]  # of its image processor, as saved
    template: str | None = None  # the chat template, in Jinja; None: there is none
    own: Mapping[str, Any] = field(default_factory=dict)  # of the processor itself
    videos: Mapping[str, Any] = field(default_factory=dict)  # of its video processor, for exports alone

    def pixels(self, unsaved: tuple[int, int]) -> tuple[int, int]:
        """Least and most pixels of an image of the Qwen families; `unsaved` without a processor."""
        if not self.images:
            return unsaved
        size, (least, most) = self.images.get("size") or {}, LIBRARY_PIXELS
        least = size.get("shortest_edge") or size.get("min_pixels") or least
        most = size.get("longest_edge") or size.get("max_pixels") or most
        # An older name next to `size` wins, as in the library.
        least, most = self.images.get("min_pixels") or least, self.images.get("max_pixels") or most
        return int(least), int(most)


def read_processor(model: str, source: Mapping[str, Any], tokenizer: Any, *, ours: bool = True) -> Processor:
    """Read the settings that are saved with a model.

    Args:
        model: a folder, or a Hub name; source: arguments of the library's readers (`find_model`).
        tokenizer: its tokenizer, whose chat template counts if the processor has none.
        ours: settings that our engine does not follow are a `UserError`.
    """
    from transformers import ProcessorMixin

    # Our engine takes the steps that all published processors take.
    images = _read_images(model, source)
    lacking = [f"{step} = false" for step in PIXEL_STEPS if images.get(step) is False]
    if abs(images.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        lacking.append("a rescale_factor other than 1/255")
    if lacking and ours:
        raise UserError(f"--model {model}: its {IMAGE_SETTINGS} asks for {lacking[0]}, which is not supported.")

    # The library finds the chat template in whichever file holds it.
    try:
        own = dict(ProcessorMixin.get_processor_dict(model, **source)[0])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--model {model}: its processor's files cannot be read ({first_line(error)}).") from None
    template = own.get("chat_template") or getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):  # several, by name
        template = template.get("default")
    return Processor(images, template or None, own, read_settings(model, source, VIDEO_SETTINGS))


def _read_images(model: str, source: Mapping[str, Any]) -> dict[str, Any]:
    from transformers.image_processing_base import ImageProcessingMixin

    try:
        saved, _ = ImageProcessingMixin.get_image_processor_dict(model, **source)
        saved.get("image_mean")
    except (OSError, ValueError, AttributeError) as error:
        if (Path(model) / IMAGE_SETTINGS).is_file():
            raise UserError(f"--model {model}: its {IMAGE_SETTINGS} cannot be read ({first_line(error)}).") from None
        return {}
    return saved


def read_settings(model: str, source: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Read a JSON file of a model, {} if there is none; code or pickles in it are a `UserError`."""
    from transformers.utils import cached_file

    def check(part: dict[str, Any]) -> dict[str, Any]:
        kernels = [str(value) for key, value in part.items() if key.endswith("_implementation")]
        if "auto_map" in part or any("/" in kernel for kernel in kernels):
            raise UserError(f"--model {model}: its {name} wants code of others to be run, which is refused.")
        files = [part.get("transformers_weights") or INDEX, *dict(part.get("weight_map") or {}).values()]
        if not all(file == INDEX or str(file).endswith(".safetensors") for file in files):
            raise UserError(f"--model {model}: its {name} names weights that are no safetensors. Convert them first.")
        return part

    try:
        path = cached_file(model, name, _raise_exceptions_for_missing_entries=False, **source)
        return {} if path is None else dict(json.loads(Path(path).read_bytes(), object_hook=check))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}


def first_line(error: Exception) -> str:
    """The first line of a library's error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


# ---- chat template -----------------------------------------------------------------------------

PRIVATE = range(0xE000, 0xF900)  # Unicode's private use area


class ChatTemplate:
    """Lays conversations out in text and special tokens, by a template in Jinja.

    `image_mark` is the token of an image in what it writes; None: it takes texts alone, as strings.
    Where the tokenizer reads across the template's special tokens, that is a `UserError`.
    """

    def __init__(self, tokenizer: Any, source: str, image_mark: int | None) -> None:
        # Longer special tokens go first: one may begin with another.
        self.tokenizer, self.source = tokenizer, source
        self._mark = None if image_mark is None else tokenizer.convert_ids_to_tokens(image_mark)
        tokens = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
        tokens = sorted({*tokens, *tokenizer.all_special_tokens}, key=len, reverse=True)
        self._ids = {token: int(tokenizer.convert_tokens_to_ids(token)) for token in tokens}

        # Where a text spells one, or ends in the beginning of one.
        spelt = "|".join(re.escape(token) for token in tokens)
        self._special, self._spelling = re.compile(f"({spelt})"), re.compile(f"(?={spelt})")
        self._beginnings = {token[:n] for token in tokens for n in range(1, len(token))}
        self._added = tokenizer.encode("", add_special_tokens=True)
        self._check()

    def lay_out(self, spelling: Sequence[tuple[str, Any]], system: str | None = None) -> list[str | int]:
        """Text and ids of special tokens, up to where the reply begins.

        `spelling` has ("role", name), ("text", text) and ("image", digest) in order; without `system` the
        template's own message counts. A template that refuses the conversation is a `UserError`.
        """
        # No text can spell a special token: a private character stands for the first of each.
        first = [] if system is None else [("role", "system"), ("text", system)]
        whole = [*first, *spelling]
        used = set().union(self.source, *(value for kind, value in whole if kind == "text"))
        free = (chr(code) for code in PRIVATE if chr(code) not in used)
        stand_ins = {first: next(free) for first in sorted({token[0] for token in self._ids})}

        messages: list[dict[str, Any]] = []
        for kind, value in whole:
            if kind == "role":
                messages.append({"role": value, "content": []})
            elif kind == "image":
                messages[-1]["content"].append({"type": "image"})
            else:
                text = self._hide(value, stand_ins)
                messages[-1]["content"].append({"type": "text", "text": text})

        # A template for text leaves images out.
        text = self._render(messages)
        shown = text.count(self._mark) if self._mark else 0
        images = sum(kind == "image" for kind, _ in spelling)
        if shown != images:
            raise UserError(
                f"The model's chat template shows {shown} of the prompt's {images} images, so it is no template for "
                "images. Save or download the model again, with its processor's files."
            )

        # The token that begins a text stands there once: by the template, or by the tokenizer.
        begin = self.tokenizer.bos_token
        begun = begin is not None and text.startswith(begin)
        back = {ord(stand_in): first for first, stand_in in stand_ins.items()}
        return [*([] if begun else self._added), *self._cut(text, back)]

    def _render(self, messages: Sequence[dict[str, Any]]) -> str:
        if self._mark is None:
            texts = ["".join(part.get("text", "") for part in each["content"]) for each in messages]
            messages = [{**each, "content": x} for each, x in zip(messages, texts, strict=True)]
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True}
        try:
            return self.tokenizer.apply_chat_template(messages, chat_template=self.source, **options)
        except Exception as error:  # whatever a stranger's template raises
            raise UserError(
                f"The model's chat template refuses the prompt ({first_line(error)}). Another history may do: "
                "--history-turns 0 --history-images 1"
            ) from None

    def _cut(self, text: str, back: dict[int, str]) -> Iterator[str | int]:
        for part in filter(None, self._special.split(text)):
            yield self._ids[part] if part in self._ids else part.translate(back)

    def _hide(self, text: str, stand_ins: dict[str, str]) -> str:
        """The text with a stand-in wherever a special token begins, complete or at its end."""
        end = len(text.rstrip())  # a template may strip
        at = {match.start() for match in self._spelling.finditer(text)}
        longest = max(map(len, self._beginnings), default=0)
        tails = range(1, min(longest, end) + 1)
        at.update(end - n for n in tails if text[end - n : end] in self._beginnings)
        return "".join(stand_ins[x] if i in at else x for i, x in enumerate(text)) if at else text

    def _check(self) -> None:
        """Compare with the tokenizer's own reading of the whole text."""
        content = [{"type": "image"}, {"type": "text", "text": " Which way?\n"}]
        whole = self._render([{"role": "user", "content": content}])
        ids: list[int] = []
        for piece in self._cut(whole, {}):
            plain = {"add_special_tokens": False, "split_special_tokens": True}
            ids += self.tokenizer.encode(piece, **plain) if isinstance(piece, str) else [piece]
        if ids != self.tokenizer.encode(whole, add_special_tokens=False):
            raise UserError(
                "The model's tokenizer reads its chat template's special tokens together with the text next to them, "
                "which is not supported."
            )
