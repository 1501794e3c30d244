"""Probe episodes: a spec lists them so that every rule shows in its fingerprint.

Plain data in a spec, so that listing environments imports nothing. Playing them is `vlgym.testing`'s business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..errors import SpecError
from .seeding import SPLITS

ORACLE, TO_THE_END, RAW, LEGAL, EDIT, INTO = "@oracle", "@oracle...", "@raw ", "@legal ", "@edit ", " => "
"""Replies that are not an action: see `Probe.replies`."""


@dataclass(frozen=True)
class Probe:
    """One episode that reaches certain rules.

    Attributes:
        rule: the rules that it reaches, in words.
        replies: in order, each one of
            an action, which the parser writes in its format;
            `@oracle`, the oracle's reply; `@oracle...`, the oracle's replies until the episode ends;
            `@edit OLD => NEW`, the oracle's reply with every OLD in it replaced by NEW;
            `@legal N`, the legal action at place N, from 0, or from -1 from the end (modulo their number);
            `@raw TEXT`, the reply TEXT as it stands.
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
        def need(condition: bool, name: str, wanted: str) -> None:
            if not condition:
                raise SpecError(f"Probe {self.rule!r}: field {name} is {getattr(self, name)!r:.80}, not {wanted}.")

        need(isinstance(self.rule, str) and self.rule.strip() != "", "rule", "a non-empty string")
        replies = self.replies
        texts = isinstance(replies, (tuple, list)) and all(isinstance(reply, str) for reply in replies)
        need(texts, "replies", "a tuple of strings")
        object.__setattr__(self, "replies", tuple(replies))
        for reply in self.replies:
            number = reply.removeprefix(LEGAL).lstrip("-").isdigit() or not reply.startswith(LEGAL)
            whole = number and (INTO in reply or not reply.startswith(EDIT))
            need(whole, "replies", f"of a kind that there is: {reply!r:.60}")
        need(self.split in SPLITS, "split", f"one of {', '.join(SPLITS)}")
        need(isinstance(self.index, int) and self.index >= 0, "index", "an integer >= 0")
        for name in ("options", "kwargs"):
            need(isinstance(getattr(self, name), dict), name, "a dict")
            try:
                json.dumps(getattr(self, name))
            except TypeError as error:
                raise SpecError(f"Probe {self.rule!r}: {name} must be JSON-able ({error}).") from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, what has its default left out."""
        plain = {"rule": self.rule, "replies": list(self.replies)}
        default = Probe(self.rule, self.replies)
        more = ("options", "kwargs", "split", "index")
        return plain | {name: getattr(self, name) for name in more if getattr(self, name) != getattr(default, name)}

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
