"""Any chat model for images and text that the library loads, as a policy: its own processor, its own `generate`.

The processor lays out the prompt and sizes the images, as its publishers meant it. Of `generate` only the loop is used:
tokens are chosen here, from the whole distribution, because checkpoints' generation configs cut it silently.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from typing import Any, Self

import torch
from PIL import Image as PillowImage
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from vlgym.errors import UserError
from vlgym.making import unwrap
from vlgym.parsers import Parser
from vlgym.types import Message, Reply, Turn, Usage

from ..engine.eager import CHECK, draw
from ..engine.ends import Decode, find_token_end
from ..models.limits import Limits
from ..models.load import first_line, load_weights
from ..models.prompt import join_system
from .engine_policy import CONCURRENCY, describe_prompt, describe_sampling, preferred
from .fingerprint import hash_model
from .sampling import Sampling

PLACEHOLDERS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index", "audio_token_id")


class GeneratePolicy:
    """Answers with the library's `generate`. A reply ends where the parser of its turn's environment has what it asked
    for.

    Args:
        model: the library's model, in eval mode.
        processor: its processor; its tokenizer will pad on the left.
        sampling: how tokens are chosen.
        name: as reports show it.
        limits: the model's training; its prompt layout is what the policy prefers.
        weights: which model it is, for a run's record.

    Raises:
        UserError: the processor would read special tokens out of text.
    """

    sees = True
    concurrency = CONCURRENCY

    def __init__(
        self, model: Any, processor: Any, sampling: Sampling, *, name: str, limits: Limits, weights: str = ""
    ) -> None:
        self.model, self.processor, self.sampling, self.name = model, processor, sampling, name
        self.limits, self.weights, self.tokenizer = limits, weights, processor.tokenizer
        self.tokenizer.padding_side = "left"
        ends = model.generation_config.eos_token_id
        ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        self.ends = sorted({*ends, self.tokenizer.eos_token_id} - {None})
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        # The library fills in whatever an own configuration leaves out from the model's, so that one is replaced.
        model.generation_config = GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=sampling.max_new_tokens, eos_token_id=self.ends,
            pad_token_id=self.tokenizer.pad_token_id, use_cache=True,
        )  # fmt: skip
        never = [getattr(model.config, key, None) for key in PLACEHOLDERS]
        beyond = range(len(self.tokenizer), model.get_output_embeddings().weight.shape[0])
        self.never = torch.tensor(sorted({*(i for i in never if isinstance(i, int)), *beyond}), device=model.device)
        if "sanitize_control_tokens" not in inspect.signature(processor.apply_chat_template).parameters:
            raise UserError(
                f"{name}: its processor would read text that spells a special token as that token, and a model may "
                "write one. A newer release keeps it text: pip install --upgrade transformers"
            )

    @classmethod
    def load(
        cls,
        name: str,
        config: Any,
        source: dict[str, Any],
        sampling: Sampling,
        *,
        limits: Limits,
        device: str,
        dtype: str,
        hint: str,
    ) -> Self:
        """Load model and processor; `config` and `source` are those of `baselines.models.load.find_model`.

        Raises:
            UserError: one of them cannot be loaded, or the model is no chat model.
        """
        processor = _load_processor(name, source)
        model = load_weights(name, source, dtype, hint).to(device).eval()
        return cls(model, processor, sampling, name=f"hf:{name}", limits=limits, weights=hash_model(name, model))

    def describe(self) -> dict[str, Any]:
        """What a reply depends on beside the prompt, for a run's record."""
        return {
            "name": self.name, "model": self.weights, "engine": "generate",
            "dtype": str(self.model.dtype).removeprefix("torch."), "device": self.model.device.type,
            **describe_prompt(self.limits),
            **describe_sampling(self.sampling),
        }  # fmt: skip

    def prefers(self) -> dict[str, Any]:
        """Prompt layout and reply style of the model's training."""
        return preferred(self.limits)

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment's prompt; those with images and those without in a batch each."""
        replies: dict[int, Reply] = {}
        for seen in (True, False):
            rows = [row for row, turn in enumerate(turns) if has_image(turn.messages) is seen]
            if rows:
                replies.update(zip(rows, self._reply([turns[row] for row in rows]), strict=True))
        return [replies[row] for row in range(len(turns))]

    def encode(self, conversations: Sequence[Sequence[Message]]) -> Any:
        """Lay out prompts by the model's processor: the library's tensors, left-padded.

        Raises:
            UserError: the model's chat template refuses a conversation.
        """
        from jinja2 import TemplateError

        chats = []
        for conversation in conversations:
            system, messages = join_system(self.limits.system, conversation)
            first: list[Message] = [] if system is None else [_say("system", system)]
            chats.append([*first, *(_with_pictures(message) for message in messages)])
        try:
            return self.processor.apply_chat_template(
                chats, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt",
                processor_kwargs={"padding": True}, sanitize_control_tokens=True,
            )  # fmt: skip
        except TemplateError as error:
            raise UserError(
                f"{self.name}: its chat template refuses the prompt ({first_line(error)}). Another history may do: "
                "--history-turns 0 --history-images 1"
            ) from None

    @torch.no_grad()
    def _reply(self, turns: Sequence[Turn]) -> list[Reply]:
        start = time.perf_counter()
        inputs = self.encode([turn.messages for turn in turns]).to(self.model.device, self.model.dtype)
        parsers = [(unwrap(turn.env).parser,) for turn in turns]
        prompt = inputs["input_ids"].shape[1]
        choose = _Choose(self.sampling, self.sampling.draws(turns).to(self.model.device), prompt, self.never)
        stop = _Stop(self.decode, parsers, prompt)
        out = self.model.generate(
            **inputs, logits_processor=LogitsProcessorList([choose]), stopping_criteria=StoppingCriteriaList([stop])
        )
        lengths = inputs["attention_mask"].sum(-1).tolist()
        seconds = time.perf_counter() - start
        replies = []
        for ids, length, rules in zip(out[:, prompt:].tolist(), lengths, parsers, strict=True):
            ended = next((at + 1 for at, token in enumerate(ids) if token in self.ends), None)
            ids = ids[:ended]
            over = find_token_end(self.decode, ids, rules)
            ids = ids[:over]
            usage = Usage(length, len(ids), seconds)
            replies.append(Reply(self.decode(ids), cut=ended is None and over is None, usage=usage))
        return replies

    def decode(self, ids: Sequence[int]) -> str:
        """Text of a reply's ids, without special tokens."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


class _Choose(LogitsProcessor):
    """Chooses the next tokens: leaves every row one, so that the library's argmax takes it."""

    def __init__(self, sampling: Sampling, draws: Tensor, prompt: int, never: Tensor) -> None:
        self.sampling, self.draws, self.prompt, self.never = sampling, draws, prompt, never

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = scores.float().index_fill(-1, self.never, float("-inf"))
        if self.sampling.greedy:
            return scores
        uniform = self.draws[input_ids.shape[1] - self.prompt]
        token = draw(torch.log_softmax(scores / self.sampling.temperature, dim=-1), uniform)
        return torch.full_like(scores, float("-inf")).scatter(-1, token.unsqueeze(-1), 0.0)


class _Stop(StoppingCriteria):
    """Ends rows whose parser has what it asked for; asked every `CHECK` steps, as in our engine."""

    def __init__(self, decode: Decode, parsers: Sequence[Sequence[Parser]], prompt: int) -> None:
        self.decode, self.parsers, self.prompt = decode, parsers, prompt
        self.over = [False] * len(parsers)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        new = input_ids[:, self.prompt :]
        if new.shape[1] % CHECK == 0:
            for row, ids in enumerate(new.tolist()):
                self.over[row] = self.over[row] or find_token_end(self.decode, ids, self.parsers[row]) is not None
        return torch.tensor(self.over, device=input_ids.device)


def has_image(messages: Sequence[Message]) -> bool:
    """Whether a conversation shows any picture."""
    return any(part["type"] == "image" for message in messages for part in message["content"])


def _say(role: str, text: str) -> Message:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _with_pictures(message: Message) -> Message:
    parts = [
        {"type": "image", "image": PillowImage.fromarray(part["image"])} if part["type"] == "image" else part
        for part in message["content"]
    ]
    return {"role": message["role"], "content": parts}


def _load_processor(name: str, source: dict[str, Any]) -> Any:
    """The model's processor.

    Raises:
        UserError: it cannot be loaded, or it is none for chats about images.
    """
    from transformers import AutoProcessor

    try:
        processor: Any = AutoProcessor.from_pretrained(name, **source)
    except ImportError as error:
        raise UserError(f"hf:{name}: its processor needs a package that is not here. {_say_package(error)}") from None
    except Exception as error:  # whatever a library raises on a file that is not its own
        raise UserError(
            f"hf:{name}: its processor cannot be loaded ({first_line(error)}). Save or download the model again, with "
            "its preprocessor_config.json and tokenizer."
        ) from None
    if not (hasattr(processor, "tokenizer") and hasattr(processor, "image_processor")):
        raise UserError(
            f"hf:{name}: its processor is a {type(processor).__name__}, which does not read images and text. "
            "Save or download the model again, with its preprocessor_config.json and tokenizer."
        )
    if not (getattr(processor, "chat_template", None) or getattr(processor.tokenizer, "chat_template", None)):
        raise UserError(
            f"hf:{name} has no chat template, so how it reads a conversation is unknown. Choose its instruct "
            "version, or save its template beside the weights as chat_template.jinja."
        )
    return processor


def _say_package(error: ImportError) -> str:
    """What to install for a library's error, which begins with `CLASS requires the PACKAGE library`."""
    line = first_line(error)
    words = line.split(" requires the ")
    package = words[1].split()[0].lower() if len(words) == 2 else ""
    return f"{line}.{f' pip install {package}' if package.isidentifier() else ''}"
