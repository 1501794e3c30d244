"""Prompt templates, and the builder that turns instructions and history into chat messages.

A template has two parts: instructions (said once: role, task, reply format) and the turn text (said
at each step: state, legal actions). A prompt is a pure function of the template, the environment's
strings and the history.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import SpecError, UserError
from ..types import Image, Message
from .spec import EnvSpec

WITHOUT_PICTURE = ("text", "none")  # modalities whose prompts show no picture

# Beginnings of the words of a picture in a turn's text, with the picture and without it.
IN_PICTURE, IN_WORDS = "In the picture", "In words"

# Words of a template on the picture, and those instead of them where words alone are played.
PICTURE_SHOWS, WORDS_TELL = "The picture shows", "The words describe"
INSTRUCTION_FIELDS = frozenset({"task", "format", "max_turns"})
TURN_FIELDS = frozenset({"state", "actions", "turn", "max_turns"})


def shows_picture(arguments: Mapping[str, Any]) -> bool:
    """True if the prompts of an environment with these constructor arguments show pictures."""
    return arguments.get("modality", "image") not in WITHOUT_PICTURE


# Styles of prompting, as BALROG has them: the sentence that each adds to the instructions.
STYLES = {
    "naive": "Write the action at once, without any thoughts before it.",
    "cot": "Think step by step before you write the action: what you see, what the task asks for, "
    "and what each action would lead to.",
}


@dataclass(frozen=True)
class PromptTemplate:
    """A versioned pair of texts with named fields.

    Attributes:
        version: bump it with every change of wording; only scores of one version are comparable.
        instructions: may use `{task}`, `{format}`, `{max_turns}`.
        turn: must use `{actions}`, may use `{state}`, `{turn}` (from 1), `{max_turns}`.
        in_words: the wording of `modality="text"`: `WORDS_TELL` instead of `PICTURE_SHOWS`.

    >>> template = PromptTemplate(1, instructions="Find it. {format}", turn="Turn {turn}. Legal actions: {actions}.")
    >>> template.write_turn(state="", actions=["left", "right"], turn=0, max_turns=10)
    'Turn 1. Legal actions: left, right.'
    """

    version: int
    instructions: str
    turn: str
    in_words: bool = False

    def __post_init__(self) -> None:
        _check_fields("instructions", self.instructions, INSTRUCTION_FIELDS)
        _check_fields("turn", self.turn, TURN_FIELDS)
        if "{actions}" not in self.turn:
            raise SpecError("PromptTemplate.turn must state the legal actions with {actions}.")
        if "{format}" not in self.instructions:
            raise SpecError("PromptTemplate.instructions must state the reply format with {format}.")

    def digest(self, reply_format: str = "") -> str:
        """Return a hash of version, texts, wording and the parser's format: 16 hex digits."""
        parts = [str(self.version), self.instructions, self.turn, reply_format, *[WORDS_TELL] * self.in_words]
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]

    def write_instructions(self, *, task: str, reply_format: str, max_turns: int) -> str:
        """Fill in the instructions."""
        return self._word(self.instructions.format(task=task, format=reply_format, max_turns=max_turns))

    def write_turn(self, *, state: str, actions: Sequence[str], turn: int, max_turns: int) -> str:
        """Fill in the turn text; `turn` counts from 0 and is shown from 1."""
        listed = ", ".join(actions)
        return self._word(self.turn.format(state=state, actions=listed, turn=turn + 1, max_turns=max_turns))

    def _word(self, text: str) -> str:
        return text.replace(PICTURE_SHOWS, WORDS_TELL) if self.in_words else text


@dataclass(frozen=True)
class PromptBuilder:
    """Lays out chat messages with explicit limits on what the model remembers.

    Attributes:
        history_turns: past turns (text and the model's reply) shown before the current one.
        history_images: most images in the whole prompt, the current one included; the oldest are
            dropped first and the text says so, 0 makes a text-only prompt; `examples` do not count.
        system: text of a system message, before what an environment says in one.
        style: key of `STYLES`; empty for none.
        examples: turns that the prompt shows as a conversation before the episode's own.
        in_words: the environment shows no pictures, so the text calls none omitted.
    """

    history_turns: int = 0
    history_images: int = 1
    system: str = ""
    style: str = ""
    examples: tuple[PastTurn, ...] = ()
    in_words: bool = False

    def __post_init__(self) -> None:
        if self.history_turns < 0 or self.history_images < 0:
            raise UserError("history_turns and history_images must be >= 0.")

    @classmethod
    def for_spec(cls, spec: EnvSpec | None) -> PromptBuilder:
        """Return the layout with an environment's own history defaults, if it has a card."""
        return cls() if spec is None else cls(spec.history_turns, spec.history_images)

    @classmethod
    def for_env(cls, env: Any, layout: PromptBuilder | None = None) -> PromptBuilder:
        """Return a layout, by default an environment's own; without pictures if it shows none."""
        layout = layout or cls.for_spec(env.vlgym_spec)
        if env.modality in WITHOUT_PICTURE:
            return replace(layout, history_images=0, in_words=True)
        return layout

    @classmethod
    def asked(cls, turns: int | None, images: int | None) -> PromptBuilder | None:
        """Return the layout of a user's options; `None` without any. Images bring the turns that
        they need."""
        if turns is None and images is None:
            return None
        images = 1 if images is None else images
        return cls(max(0, images - 1) if turns is None else turns, images)

    def describe_additions(self, prompt_hash: str) -> dict[str, Any]:
        """Return a run's record of system, style and examples, with a hash over all."""
        if not (self.system or self.style or self.examples):
            return {}
        turns = [(each.turn_text, each.reply, each.image.shape, each.image.tobytes().hex()) for each in self.examples]
        words = json.dumps([prompt_hash, self.system, STYLES.get(self.style), turns])
        return {
            "prompt_hash": hashlib.sha256(words.encode()).hexdigest()[:16],
            "prompt_additions": {
                "system": self.system or None, "style": self.style or None, "example_turns": len(turns) or None,
            },
        }  # fmt: skip

    def build(
        self, instructions: str, turn_text: str, image: Image, history: Sequence[PastTurn] = (), *, system: str = ""
    ) -> list[Message]:
        """Return messages that end with a user turn.

        Args:
            instructions: said once, at the top of the first user turn.
            image: current image, `[H, W, 3] uint8`.
            history: all past turns of this episode, oldest first.
            system: the beginning of the instructions, said by a system message instead.
        """
        parts = (instructions.removeprefix(system).strip(), STYLES.get(self.style, ""))
        instructions = "\n".join(filter(None, parts))
        messages: list[Message] = []
        if system_text := "\n\n".join(filter(None, (self.system, system))):
            messages.append({"role": "system", "content": [{"type": "text", "text": system_text}]})

        # Examples look like turns of an episode, which the text says they are not.
        for position, example in enumerate(self.examples):
            picture = example.image if self.history_images else None
            text = f"(example)\n{example.turn_text}"
            messages += _exchange(picture, text, "" if position else instructions, example.reply)
        if self.examples:
            instructions = "The examples end here. A new episode begins."

        # The last turns, of which the oldest lose their pictures first.
        past = history[max(0, len(history) - self.history_turns) :]
        with_image = max(0, self.history_images - 1)
        for position, record in enumerate(past):
            picture = record.image if position >= len(past) - with_image else None
            omitted = "(image omitted)\n" if picture is None and not self.in_words else ""
            text = f"{omitted}{record.turn_text}"
            messages += _exchange(picture, text, "" if position else instructions, record.reply)
        current = image if self.history_images > 0 else None
        return [*messages, _user(current, turn_text, "" if past else instructions)]


@dataclass(frozen=True)
class PastTurn:
    """A past turn, as the builder needs it."""

    image: Image
    turn_text: str
    reply: str


def write_messages(messages: Iterable[Message], image_names: dict[int, str] | None = None) -> str:
    """Return chat messages as text; images as size and, by `id`, file in `image_names`."""
    lines = []
    for message in messages:
        lines.append(f"[{message['role']}]")
        for part in message["content"]:
            if part["type"] == "image":
                height, width = part["image"].shape[:2]
                file = (image_names or {}).get(id(part["image"]))
                lines.append(f"<image {height}x{width}{f': {file}' if file else ''}>")
            else:
                lines.append(part["text"])
    return "\n".join(lines)


def _user(image: Image | None, text: str, instructions: str) -> Message:
    pictures = [] if image is None else [{"type": "image", "image": image}]
    words = {"type": "text", "text": f"{instructions}\n\n{text}" if instructions else text}
    return {"role": "user", "content": [*pictures, words]}


def _exchange(image: Image | None, text: str, instructions: str, reply: str) -> list[Message]:
    answer: Message = {"role": "assistant", "content": [{"type": "text", "text": reply}]}
    return [_user(image, text, instructions), answer]


def _check_fields(part: str, text: str, allowed: frozenset[str]) -> None:
    try:
        used = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise SpecError(f"PromptTemplate.{part} is not a valid template: {error}.") from None
    unknown = used - allowed
    if unknown:
        raise SpecError(f"PromptTemplate.{part} uses {sorted(unknown)}; allowed are {sorted(allowed)}.")
