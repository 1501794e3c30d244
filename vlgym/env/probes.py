"""Probe episodes: a spec lists them, as plain data, so that every rule shows in its fingerprint."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import SpecError
from .seeding import SPLITS

# Replies that are not an action: see `Probe.replies`.
ORACLE, TO_THE_END, RAW, LEGAL, EDIT, INTO = "@oracle", "@oracle...", "@raw ", "@legal ", "@edit ", " => "


@dataclass(frozen=True)
class Probe:
    """One episode that reaches certain rules.

    Attributes:
        rule: the rules that it reaches, in words.
        replies: in order, each one of an action, which the parser writes in its format; `@oracle`,
            the oracle's reply; `@oracle...`, the oracle's replies until the episode ends; `@edit
            OLD => NEW`, the oracle's reply with every OLD in it replaced by NEW; `@legal N`, the
            legal action at place N, from 0, or from -1 from the end (modulo their number); `@raw
            TEXT`, the reply TEXT as it stands.
        options: options of `reset`, JSON-able.
        kwargs: constructor arguments over the spec's own, JSON-able.
        index: number of the episode within the split.
    """

    rule: str
    replies: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    kwargs: dict[str, Any] = field(default_factory=dict)
    split: str = "train"
    index: int = 0

    def __post_init__(self) -> None:
        texts = isinstance(self.replies, (tuple, list)) and all(isinstance(reply, str) for reply in self.replies)
        for name, fine, wanted in (
            ("rule", isinstance(self.rule, str) and self.rule.strip(), "a non-empty string"),
            ("replies", texts and all(map(_is_known, self.replies)), "a tuple of replies of a kind that there is"),
            ("split", self.split in SPLITS, f"one of {', '.join(SPLITS)}"),
            ("index", isinstance(self.index, int) and self.index >= 0, "an integer >= 0"),
            ("options", isinstance(self.options, dict), "a dict"),
            ("kwargs", isinstance(self.kwargs, dict), "a dict"),
        ):
            if not fine:
                raise SpecError(f"Probe {self.rule!r}: field {name} is {getattr(self, name)!r:.80}, not {wanted}.")
        object.__setattr__(self, "replies", tuple(self.replies))
        try:
            json.dumps([self.options, self.kwargs])
        except TypeError as error:
            raise SpecError(f"Probe {self.rule!r}: options and kwargs must be JSON-able ({error}).") from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without options that have their defaults."""
        plain, default = asdict(self), asdict(Probe(self.rule))
        more = {name: value for name, value in plain.items() if value != default[name]}
        return {"rule": self.rule, **more, "replies": list(self.replies)}

    @classmethod
    def from_dict(cls, data: Any) -> Probe:
        """Build a probe from `to_dict`'s form.

        Raises:
            SpecError: a field is unknown, missing or malformed.
        """
        try:
            return cls(**data)
        except TypeError as error:
            raise SpecError(f"Probe: {error}.") from None


def _is_known(reply: str) -> bool:
    """True if a reply begins with no mark, or goes on as its mark asks."""
    if reply.startswith(LEGAL):
        return reply.removeprefix(LEGAL).removeprefix("-").isdigit()
    return INTO in reply or not reply.startswith(EDIT)
