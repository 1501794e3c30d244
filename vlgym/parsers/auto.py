r"""`<action>turn left</action>`, and the other forms that models write by habit (docs/evaluate.md).

The first complete tag with a legal action is the action. Without one the forms are looked through
in the order of trust: `<answer>`, `\boxed{}`, GLM's box, a tool call, `Action:` at the beginning
of a line, brackets, the last line. Of the first form with legal actions all must claim the same
one. Illegal claims, such as a placeholder, do not count.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from ..types import Match, Parsed
from .claims import MOST_CLAIMS
from .json_reply import find_objects
from .tag import TAG, TagParser, find_pairs

Claim = tuple[str, int, int]  # words that may be an action, and their place

_MINIMAX = "]<]minimax[>["  # MiniMax M3 writes it before each of its tags
_ANSWER = re.compile(
    r"<(?:answer|response|\|(?:ACTION|begin_of_solution|START_TEXT|START_RESPONSE)\|)>|\[BEGIN FINAL RESPONSE\]"
    r"|(</(?:answer|response)>|<\|(?:END|end_of_solution|END_TEXT|END_RESPONSE)\|>|\[END FINAL RESPONSE\])",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*+)\}")
_BOX = re.compile(r"<\|(?:begin_of_box|(end_of_box))\|>")
_CALLS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"<[^<>\s]*param(?:eter)?(?:=|\s+name\s*=\s*)[\"']?action[\"']?[^<>]*>(?:<!\[CDATA\[)?([^<]*?)(?:\]\]>)?</",
        r"arg_key>\s*action\s*(?:</[^<>]*>\s*<[^<>]*arg_value>|=)([^<>]*)</",
        r"argument key=\"action\"[^<>]{0,80}<\|sep\|>([^<]*)<\|close\|>",
        r"<\|tool_arg:start\|>action<\|tool_arg:value\|>([^<]*)<\|tool_arg:end\|>",
        r"\w\(\s*action\s*=\s*[\"']([^\"'\n]*)[\"']\s*,?\s*\)",
        r"\bcall:[\w.]{1,64}\{\s*action\s*:\s*(?:<\|\"\|>|<escape>|[\"'])?([^<{}\"'\n]*)(?:<\|\"\|>|<escape>|[\"'])?\s*\}",
        r"[{,]\s*'action'\s*:\s*'([^'\n]*)'\s*[,}]",
        r"<tool: ?\w{1,32}>\s*act\s+([^<]*)</tool>",
    )
)
_ARGUMENTS = ("arguments", "parameters", "args", "function", "input")
_LINE = re.compile(
    r"^[ \t>#*_`-]*(?:final |next )?(?:action(?: input)?|answer|move)[*_`]*[ \t]*:[*_`]*[ \t]*(?:\n[ \t]*)?(\S[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_BRACKETS = re.compile(r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\]){1,200}+)\]")
_END_TOKEN = re.compile(r"(?:</?[\w|:]{1,40}>|\[END FINAL RESPONSE\])\Z", re.IGNORECASE)

_PLAIN_FORMS: dict[int, int | str] = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u3000\u00a0\u2009\u202f"), " "),
    **dict.fromkeys(map(ord, "“”„‟«»"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛"), "'"),
    **dict.fromkeys(map(ord, "−‐‑‒–—―﹣"), "-"),
    ord("。"): ".",
}
_FENCE = re.compile(r"```\w*\n(.*)\n[ \t]*```", re.DOTALL)
_LATEX = re.compile(r"\\(?:text|mathrm|mathbf|mathtt|operatorname)[a-z]*\s*\{(.*)\}", re.DOTALL)
_ESCAPE = re.compile(r"\\(?=[_%&#$ ])")
_WRAPS = ("```", "***", "**", "*", "__", "_", "``", "`", '"', "'", "$")
_NAME_CALL = re.compile(r"(.*\w)\(\s*\)", re.DOTALL)
_JOINT = re.compile(r"(?<=[^\W\d_])(?:_+(?=[^\W_])|-(?=[^\W\d_]))")


class AutoParser(TagParser):
    r"""Reads the first legal `<action>` tag, else the most trusted other form with a legal action.

    >>> AutoParser().parse(r"So: \boxed{\text{Turn_Left}}", ["turn left", "turn right"]).actions
    ('turn left',)
    >>> AutoParser().parse("[turn left] or [turn right]?", ["turn left", "turn right"]).failure
    'ambiguous'
    """

    name = "auto"
    version = 1

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return one action, or failure `ambiguous`, `illegal_action` (only tags), `no_action`.

        Without `legal` and `matches`, any action counts.
        """
        legality = _Legality(legal, matches)
        tags: list[Claim] = []
        for form, claims in _list_claims(text, _straighten(text), legality):
            tags = claims if form == "tag" else tags
            words = [legality.find(written) for written, _, _ in claims[:MOST_CLAIMS]]
            meant = {legality.mean(word) for word in words if word}

            # Of tags the first counts; of other forms all claims must mean the same.
            if (None in words or len(meant) > 1) and not (form == "tag" and meant):
                return Parsed(failure="ambiguous")
            for word, (_, start, end) in zip(words, claims, strict=False):
                if word:
                    return Parsed((word,), span=(start, end), form=form)

        # An illegal tag says more than none.
        written, start, end = tags[-1] if tags else ("", 0, 0)
        if written.strip():
            return Parsed((written.strip(),), failure="illegal_action", span=(start, end))
        return Parsed(failure="illegal_action" if tags else "no_action")

    def end(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
        """Return the length of `text` up to its first tag with a legal action, or `None`."""
        legality = _Legality(legal, matches)
        pairs = islice(find_pairs(_straighten(text), TAG), MOST_CLAIMS)
        return next((stop for start, end, stop in pairs if legality.find(text[start:end])), None)


class _Legality:
    """Decides what words mean in a state: as they are first, then folded."""

    def __init__(self, legal: Sequence[str] | None, matches: Match | None) -> None:
        self.known = legal is not None or matches is not None
        self.legal = frozenset(legal or ())
        self.matches = matches or (lambda _: None)
        self._meanings: dict[str, str | None] = {}

    @cached_property
    def _folded(self) -> dict[str, set[str]]:
        folded = defaultdict(set)
        for action in self.legal:
            for word in _unwrap(action):
                folded[_fold(word)].add(action)
        return folded

    def find(self, written: str) -> str | None:
        """Return the words of a legal action; empty for none, `None` if folded words fit two."""
        if written not in self._meanings:
            self._meanings[written] = self._find(written.strip())
        return self._meanings[written]

    def _find(self, written: str) -> str | None:
        if not self.known or not written:
            return written
        for word in _unwrap(written):
            if word in self.legal:
                return word
            fits = self._folded.get(_fold(word), ())
            if len(fits) > 1:
                return None
            for each in dict.fromkeys((word, _straighten(word), *fits, _JOINT.sub(" ", _straighten(word)))):
                if each in self.legal or self.matches(each) is not None:
                    return each
        return ""

    def mean(self, word: str) -> str:
        """Return the action that found words mean."""
        return self.matches(word) or word


def _straighten(text: str) -> str:
    """Return the text with full-width and typographic signs as those of ASCII; positions stay."""
    text = text if text.isascii() else text.translate(_PLAIN_FORMS)
    return text.replace(_MINIMAX, " " * len(_MINIMAX))


def _fold(word: str) -> str:
    return " ".join(_JOINT.sub(" ", _straighten(word)).split()).casefold()


def _unwrap(word: str) -> Iterator[str]:
    """Yield words as they are, then without each mark (fence, quote, emphasis, ...) around them."""
    word = word.strip()
    for _ in range(8):
        yield word
        inner = _strip(_straighten(word)).strip()
        if not inner or inner == word:
            return
        word = inner


def _strip(word: str) -> str:
    for pattern in (_FENCE, _LATEX, _NAME_CALL):
        if match := pattern.fullmatch(word):
            return match[1]
    for wrap in _WRAPS:
        if len(word) > 2 * len(wrap) and word.startswith(wrap) and word.endswith(wrap):
            return word[len(wrap) : -len(wrap)]
    if word.startswith("[") and word.endswith("]"):
        return word[1:-1]
    return word[:-1] if word.endswith(".") else _ESCAPE.sub("", word.removesuffix("**"))


def _find_inside(text: str, plain: str, tag: re.Pattern[str]) -> list[Claim]:
    return [(text[start:end], start, end) for start, end, _ in find_pairs(plain, tag)]


def _find_unclosed(plain: str, legality: _Legality) -> Iterator[Claim]:
    """Yield the content of a last tag without its closing mark, which servers cut off.

    It is left out where a listed action goes on behind it: that may have been cut in the middle.
    """
    *_, last = [None, *TAG.finditer(plain)]
    if last is not None and not last[1]:
        written = plain[last.end() :].strip()
        if written in legality.legal and sum(action.startswith(written) for action in legality.legal) == 1:
            yield written, last.end(), len(plain)


def _list_claims(text: str, plain: str, legality: _Legality) -> Iterator[tuple[str, list[Claim]]]:
    """Yield each form and its claims, the most trusted first."""

    def find(*patterns: re.Pattern[str]) -> list[Claim]:
        spans = [match.span(1) for pattern in patterns for match in pattern.finditer(plain)]
        return [(text[start:end], start, end) for start, end in spans]

    # Forms with marks.
    yield "tag", [*_find_inside(text, plain, TAG), *_find_unclosed(plain, legality)]
    yield "answer", _find_inside(text, plain, _ANSWER)
    yield "boxed", find(_BOXED)
    yield "box", _find_inside(text, plain, _BOX)
    objects: list[Claim] = []
    for value, start, end in find_objects(plain):
        objects += [(claim, start, end) for claim in _list_actions(value)]
    yield "call", [*objects, *find(*_CALLS)]
    yield "line", find(_LINE)

    # Forms that any text has; the last line is one, without closing fences and end tokens.
    if legality.known:
        yield "brackets", find(_BRACKETS)
        body = plain.rstrip().removesuffix("\n```").rstrip()
        for _ in range(4):
            body = (body[:-48] + _END_TOKEN.sub("", body[-48:])).rstrip()
        start = len(body) - len(body[body.rfind("\n") + 1 :].lstrip())
        yield "bare", [(text[start : len(body)], start, len(body))]


def _list_actions(value: Any) -> Iterator[str]:
    """Yield a JSON value's actions: under `action`, in a call's arguments, or as its name."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and value.lstrip().startswith("{"):
            waiting += [each for each, _, _ in find_objects(value)]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            # Keys of the exact case go first.
            named = {key.casefold(): item for key, item in value.items()} | value
            action = named.get("action", named.get("actions"))
            for each in action if isinstance(action, list) else [action]:
                if isinstance(each, str | int | float) and not isinstance(each, bool):
                    yield str(each)
                elif each is not None:
                    waiting.append(each)

            # Without an action a call's arguments may hold one, else its name is it.
            arguments = [named[key] for key in _ARGUMENTS if key in named] if action is None else []
            if action is None and not any(arguments) and isinstance(name := named.get("name"), str):
                yield name
            waiting += arguments or [each for each in value.values() if isinstance(each, dict | list)]
