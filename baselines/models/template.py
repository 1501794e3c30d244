"""A checkpoint's own chat template: it lays a conversation out in text, which is cut into pieces for the prompt.

The template sees the conversation as the library's processor shows it, so that the ids are the library's. It runs in
the library's sandbox (`ImmutableSandboxedEnvironment` of jinja2), for it comes with the checkpoint. Only special tokens
that the template itself writes become special tokens: where the text of an environment, or two of them side by side,
could spell one, its first character is exchanged for a private one before the template sees it, and put back into the
pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from vlgym.errors import UserError

from .processor import first_line

PRIVATE = range(0xE000, 0xF900)  # Unicode's private use area


class ChatTemplate:
    """Lays conversations out in text and special tokens.

    Args:
        tokenizer: the model's tokenizer.
        source: the template, in Jinja.
        image_mark: id of the token that stands for an image in what the template writes.

    Raises:
        UserError: the tokenizer reads across the template's special tokens, which those of the tested families do not.
    """

    def __init__(self, tokenizer: Any, source: str, image_mark: int) -> None:
        self.tokenizer, self.source, self._mark = tokenizer, source, tokenizer.convert_ids_to_tokens(image_mark)
        tokens = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
        tokens = sorted({*tokens, *tokenizer.all_special_tokens}, key=len, reverse=True)
        self._ids = {token: int(tokenizer.convert_tokens_to_ids(token)) for token in tokens}
        spelt = "|".join(re.escape(token) for token in tokens)
        self._special, self._spelling = re.compile(f"({spelt})"), re.compile(f"(?={spelt})")
        self._beginnings = {token[:n] for token in tokens for n in range(1, len(token))}
        self._added = tokenizer.encode("", add_special_tokens=True)
        self._check()

    def lay_out(self, spelling: Sequence[tuple[str, Any]], system: str | None = None) -> list[str | int]:
        """Text and ids of special tokens, ending where the reply begins.

        Args:
            spelling: ("role", name), ("text", text) and ("image", digest) in order.
            system: the system message; None: what the template has without one.

        Raises:
            UserError: the template refuses the conversation.
        """
        stand_ins = self._choose_stand_ins([system or "", *(value for kind, value in spelling if kind == "text")])
        messages: list[dict[str, Any]] = []
        for kind, value in ([("role", "system"), ("text", system)] if system is not None else []) + list(spelling):
            if kind == "role":
                messages.append({"role": value, "content": []})
            elif kind == "image":
                messages[-1]["content"].append({"type": "image"})
            else:
                messages[-1]["content"].append({"type": "text", "text": self._hide(value, stand_ins)})
        text = self._render(messages)
        shown, asked = text.count(self._mark), sum(kind == "image" for kind, _ in spelling)
        if shown != asked:
            raise UserError(
                f"The model's chat template shows {shown} of the prompt's {asked} images, so it is no template for "
                "images. Save or download the model again, with its processor's files."
            )
        begun = self.tokenizer.bos_token is not None and text.startswith(self.tokenizer.bos_token)
        back = {ord(stand_in): first for first, stand_in in stand_ins.items()}
        return [*([] if begun else self._added), *self._cut(text, back)]

    def _render(self, messages: Sequence[dict[str, Any]]) -> str:
        try:
            return self.tokenizer.apply_chat_template(
                messages, chat_template=self.source, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # whatever a stranger's template raises
            raise UserError(
                f"The model's chat template refuses the prompt ({first_line(error)}). Another history may do: "
                "--history-turns 0 --history-images 1"
            ) from None

    def _cut(self, text: str, back: dict[int, str]) -> Iterator[str | int]:
        for part in filter(None, self._special.split(text)):
            yield self._ids[part] if part in self._ids else part.translate(back)

    def _choose_stand_ins(self, texts: Sequence[str]) -> dict[str, str]:
        """A private character for each first character of a special token, in none of the texts."""
        used = {character for text in (self.source, *texts) for character in text if ord(character) in PRIVATE}
        free = (chr(code) for code in PRIVATE if chr(code) not in used)
        return {first: next(free) for first in sorted({token[0] for token in self._ids})}

    def _hide(self, text: str, stand_ins: dict[str, str]) -> str:
        """The text with a stand-in wherever a special token begins, also one that what follows could complete."""
        end = len(text.rstrip())  # a template may strip
        at = {found.start() for found in self._spelling.finditer(text)}
        longest = max(map(len, self._beginnings), default=0)
        at.update(end - n for n in range(1, min(longest, end) + 1) if text[end - n : end] in self._beginnings)
        if not at:
            return text
        return "".join(stand_ins[character] if i in at else character for i, character in enumerate(text))

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
