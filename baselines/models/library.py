"""Any chat model that the library loads, with its own processor and forward pass.

Prompts are laid out by the model's chat template; the processor says which tokens stand for an
image, and makes the tensors that the model reads of it.
"""

import inspect
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

import torch
from PIL import Image as PillowImage
from torch import Tensor, nn

from vlgym.errors import UserError

from .family import Family, Fifo, Fit, Images, Piece, Prompt
from .folders import IMAGE_SETTINGS, PROCESSOR_SETTINGS, VIDEO_SETTINGS, Processor, first_line

MEDIA = (  # names of the ids of placeholders in configurations
    "image_token_id", "image_token_index", "video_token_id", "video_token_index", "audio_token_id",
)  # fmt: skip
TYPES = ("token_type_ids", "mm_token_type_ids")  # inputs that are 1 on image tokens
TEXT = ("input_ids", "attention_mask", *TYPES)  # a processor's outputs for text
ANSWER = "vlgym"  # a reply whose end is looked up


class LibraryFamily(Family):
    """A model without a fast path. `PlainEngine` runs it.

    `reader` is its processor (`load_processor`), `processor` what is saved of that. A model without a
    chat template, and `image_tokens`, which its processor decides alone, are a `UserError`.
    """

    def __init__(
        self, model: Any, reader: Any, *, processor: Processor, image_tokens: int | None = None, **options: Any
    ) -> None:
        if processor.template is None:
            raise UserError(
                "The model has no chat template, so how it reads a conversation is unknown. Choose its instruct "
                "version, or save its template next to the weights as chat_template.jinja."
            )
        if image_tokens is not None:
            raise UserError(
                f"--image-tokens {image_tokens}: the images of a {model.config.model_type} model are sized by its own "
                "processor. Leave --image-tokens out."
            )

        # Configurations name placeholders and ends of replies in several ways.
        self.reader, tokenizer = reader, reader.tokenizer if self.reads_pictures else reader
        media = [getattr(model.config, name, None) for name in MEDIA]
        mark = tokenizer.convert_tokens_to_ids(reader.image_token) if self.reads_pictures else None
        ends = model.generation_config.eos_token_id
        ends = {*([ends] if isinstance(ends, int) else ends or []), tokenizer.eos_token_id} - {None}
        self._inputs = frozenset(inspect.signature(model.forward).parameters)
        self._tensors: Fifo = Fifo(64)
        super().__init__(
            model, tokenizer, processor=processor,
            turn_end=tokenizer.convert_ids_to_tokens(min(ends)),
            pad=tokenizer.pad_token or tokenizer.eos_token, image_mark=mark,
            media=[each for each in (*media, mark) if each is not None], **options,
        )  # fmt: skip

        # Of several ends, replies in prompts have the template's.
        self.turn_end = self._find_turn_end(ends)
        self.stop_ids = (self.turn_end, *sorted(ends - {self.turn_end}))
        self.suppressed = tuple(sorted({*self.suppressed, self.pad_id} - set(self.stop_ids)))

    def _find_turn_end(self, ends: set[int]) -> int:
        """The token that the chat template puts after a reply, if it ends one."""
        assert self.template is not None
        turns = [("role", "user"), ("text", ANSWER), ("role", "assistant"), ("text", ANSWER)]
        pieces = self.template.lay_out(turns)
        at = max(i for i, piece in enumerate(pieces) if isinstance(piece, str) and ANSWER in piece)
        after = next((piece for piece in pieces[at + 1 :] if isinstance(piece, int)), None)
        return after if after in ends else min(ends)

    def _size_images(self, image_tokens: int | None) -> None:
        self.image_tokens = None

    def _fit(self, height: int, width: int) -> Fit:
        return (height, width), (1, height, width), 0

    def _expand(self, images: Images) -> list[list[Piece]]:
        if not images:
            return []

        # The processor expands the marks of all images together, padding between them.
        between = self.tokenizer.convert_ids_to_tokens(self.pad_id)
        text = between.join([self.reader.image_token] * len(images))
        ids = self._process([images], [text])["input_ids"][0].tolist()

        # Text among an image's tokens is encoded together with its neighbours.
        special = {*self.suppressed, *self.stop_ids}
        parts: list[list[Piece]] = [[]]
        for is_special, group in groupby(ids, key=special.__contains__):
            if not is_special:
                parts[-1].append(self.tokenizer.decode(list(group)))
                continue
            for token in group:
                if token == self.pad_id:
                    parts.append([])
                else:
                    parts[-1].append(token)
        return parts

    def _process(self, images: Sequence[Images], texts: Sequence[str]) -> Any:
        shown = [[PillowImage.fromarray(image.pixels) for image in each] for each in images]
        options: dict[str, Any] = {"add_special_tokens": False, "padding": True}
        return self.reader(text=list(texts), images=shown, return_tensors="pt", **options)

    def inputs(
        self, prompts: Sequence[Prompt], ids: Tensor | None = None, mask: Tensor | None = None
    ) -> dict[str, Any]:
        """Return the input of the model's forward pass: B prompts left-padded to one length, then
        their replies, `ids` [B, R] int64 and `mask` [B, R] bool, if any."""
        width = max(len(prompt) for prompt in prompts)
        rows = torch.full((len(prompts), width), self.pad_id)
        real = torch.zeros(rows.shape, dtype=torch.int64)
        for row, prompt in enumerate(prompts):
            rows[row, width - len(prompt) :] = prompt.ids
            real[row, width - len(prompt) :] = 1
        rows, real = rows.to(self.device), real.to(self.device)
        if ids is not None and mask is not None:
            rows, real = torch.cat([rows, ids], dim=1), torch.cat([real, mask.long()], dim=1)
        types = {name: (rows == self.image_pad).long() for name in TYPES if name in self._inputs}
        return {"input_ids": rows, "attention_mask": real, **types, **self._pictures(prompts)}

    def _pictures(self, prompts: Sequence[Prompt]) -> dict[str, Any]:
        """The tensors of the prompts' images; remembered by content."""
        images = [prompt.images for prompt in prompts if prompt.images]
        if not images:
            return {}
        key = tuple(tuple(image.digest for image in each) for each in images)
        tensors = self._tensors.recall(key, partial(self._read, images))
        return {
            name: x.to(self.device, self.model.dtype if x.is_floating_point() else x.dtype)
            for name, x in tensors.items()
        }

    def _read(self, images: Sequence[Images]) -> dict[str, Tensor]:
        made = self._process(images, [self.reader.image_token * len(each) for each in images])
        return {name: made[name] for name in made if name in self._inputs and name not in TEXT}

    def describe_images(self) -> dict[str, Any]:
        return {}

    def processor_files(self) -> dict[str, Any]:
        own = self.processor
        files = {IMAGE_SETTINGS: own.images, PROCESSOR_SETTINGS: own.own, VIDEO_SETTINGS: own.videos}
        return {name: dict(data) for name, data in files.items() if data}

    def adopt(self, model: Any) -> None:
        self.model, self.language_model = model, model.get_decoder()
        self.decoder: Any = None

    def set_recompute(self, recompute: bool) -> None:
        if recompute:
            raise UserError(f"--recompute: not with a {self.model.config.model_type} model. Leave it out.")

    def _vision_modules(self, model: Any) -> list[nn.Module]:
        text = model.get_decoder()
        return [child for child in model.model.children() if text not in child.modules()]


class TextFamily(LibraryFamily):
    """A language model, which reads prompts without pictures alone; `reader` is the tokenizer."""

    reads_pictures = False

    def _vision_modules(self, model: Any) -> list[nn.Module]:
        return []


def is_language_model(config: Any) -> bool:
    """True if the library knows a configuration's models as language models without images."""
    from transformers.models.auto import modeling_auto as auto

    pictures, words = auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return config.model_type in words and config.model_type not in pictures


def load_processor(model: str, source: dict[str, Any], config: Any, hint: str = "") -> Any:
    """The processor of a model, without what reads videos and sound; a `UserError` if it has none."""
    from transformers import AutoImageProcessor, AutoTokenizer
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    kind: Any = PROCESSOR_MAPPING.get(type(config), None)
    try:
        names = kind.get_attributes() if kind else []
        if "image_processor" not in names or "tokenizer" not in names:
            raise UserError(
                f"--model {model} is of the family {config.model_type!r}, which does not chat about images. {hint}"
            )

        # A class of the same name that takes no reader of videos and sound.
        def check(self: Any, name: str, part: Any) -> Any:
            return None if part is None else kind.check_argument_for_proper_class(self, name, part)

        bare = type(kind.__name__, (kind,), {"check_argument_for_proper_class": check})
        saved = kind.get_processor_dict(model, **source)[0]
        taken = inspect.signature(kind.__init__).parameters.keys() - {*names}
        own = {name: value for name, value in saved.items() if name in taken}
        images = AutoImageProcessor.from_pretrained(model, **source)
        words = AutoTokenizer.from_pretrained(model, **source)
        parts = dict.fromkeys(names) | {"image_processor": images, "tokenizer": words}
        return bare(**parts, **own)
    except UserError:
        raise
    except ImportError as error:
        raise UserError(
            f"--model {model}: its processor needs a package that is not here. {_say_package(error)}"
        ) from None
    except Exception as error:  # whatever a library raises on a file that is not its own
        raise UserError(
            f"--model {model}: its processor cannot be loaded ({first_line(error)}). Save or download the model again, "
            "with its preprocessor_config.json and tokenizer."
        ) from None


def _say_package(error: ImportError) -> str:
    """A library's error, `CLASS requires the PACKAGE library ...`, with the command for it."""
    line = first_line(error)
    words = line.split(" requires the ")
    package = words[1].split()[0].lower() if len(words) == 2 else ""
    return f"{line}.{f' pip install {package}' if package.isidentifier() else ''}"
