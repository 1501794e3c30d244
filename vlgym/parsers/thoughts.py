"""Thoughts in a reply: their places, and the reply without them (docs/evaluate.md: the marks).

An action inside a thought is no action. The text before a closing mark whose opening the prompt's
template wrote is a thought, and so is all that follows an opening mark without a closing one.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

MAX_REPLY = 16384  # characters of the longest reply that is read, thoughts aside, and of a record's
MAX_RAW = 1 << 20  # characters of the longest reply in which thoughts are looked for

_SHORTEST = 256  # fewest characters of a thought that is shortened and not left out; twice a mark fits in
_GAP = "…"  # stands for a thought that is left out; in no mark


class Mark(NamedTuple):
    """Marks around one kind of thought.

    Attributes:
        opening: its beginning; may be empty.
        closings: its ends.
        absent: a closing mark ends a thought whose opening is not in the reply.
        start: the opening counts only at the reply's beginning, a word or a tag directly after it.
        words: the opening is of plain words, which count only with a closing after them.
    """

    opening: str
    closings: tuple[str, ...]
    absent: bool = True
    start: bool = False
    words: bool = False

    @property
    def tag(self) -> bool:
        """True if the marks are in brackets: only these end a thought that another kind opened."""
        return self.opening[:1] in ("<", "[", "◁")


_TAGS = "think thinking thought reason reasoning analysis think:opensource seed:think mm:think longcat_think "
_TAGS += "ifm|think ifm|think_fast ifm|think_faster"

MARKS = (
    *(Mark(f"<{tag}>", (f"</{tag}>",)) for tag in _TAGS.split()),
    Mark("[think]", ("[/think]",)),
    Mark("◁think▷", ("◁/think▷",)),
    Mark("[unused16]", ("[unused17]",)),
    Mark("<|open|>think<|sep|>", ("<|close|>think<|sep|>",)),
    Mark("", ("thinkresponse",)),
    Mark("<|start_thinking|>", ("<|end_thinking|>",)),
    Mark("<|inner_prefix|>", ("<|inner_suffix|>",)),
    Mark("<|think:start|>", ("<|think:end|>",)),
    Mark("<|plamo:begin_think:plamo|>", ("<|plamo:end_think:plamo|>",)),
    Mark("<|begin_of_thought|>", ("<|end_of_thought|>",)),
    Mark("<|channel>thought", ("<channel|>",)),
    Mark("/think\n", ("<|im_end|>\n<|im_start|>assistant",), start=True),
    Mark("analysis", ("assistantfinal", "assistantcommentary"), start=True),
    Mark("<|channel|>analysis", ("<|end|>", "<|start|>", "<|channel|>final", "<|channel|>commentary"), absent=False),
    Mark("<|content_thinking|>", ("<|end_message|>",), absent=False),
    Mark("<|think|>", ("<|end|>",), absent=False),
    Mark("to=self", ("<|eom|>", "to=user"), absent=False),
    Mark("here are my reasoning steps:", ("[begin final response]",), words=True),
    *(
        Mark(f"{here} my thought process:", ("here is my response:", "here's my response:"), absent=False, words=True)
        for here in ("here is", "here's")
    ),
)
"""All kinds, in lower case: the case of a reply's letters does not matter."""

_OPENINGS = {mark.opening: mark for mark in MARKS if mark.opening}
_CLOSINGS: dict[str, list[Mark]] = defaultdict(list)
for _mark in MARKS:
    for _closing in _mark.closings:
        _CLOSINGS[_closing].append(_mark)
_WORDS = sorted({*_OPENINGS, *_CLOSINGS}, key=len, reverse=True)
_ANY = re.compile("|".join(map(re.escape, _WORDS)))
_HINTS = ("think", "thought", "reason", "analys", "unused", "|>", "to=", "response", "assistant")
_GLUED = re.compile(r"[\w<]")


def find_thoughts(text: str) -> list[tuple[int, int]]:
    """Return where thoughts stand, `[start, end)` each, in order; two that touch are one.

    >>> find_thoughts("<think>left?</think> right"), find_thoughts("left? </think> right")
    ([(0, 20)], [(0, 14)])
    """
    plain = text.replace("İ", "I").lower()  # the one letter whose lower case is longer
    if not any(hint in plain for hint in _HINTS):  # a quick test: one is in each mark
        return []
    words = list(_ANY.finditer(plain))
    last = {mark: word.start() for word in words for mark in _CLOSINGS.get(word[0], ())}
    thoughts: list[tuple[int, int]] = []
    inside: Mark | None = None
    first = len(plain) - len(plain.lstrip())
    begun, border, unclosed = 0, 0, len(text)

    # One pass over the marks; `border` is the end of the last thought.
    for word in words:
        opens = _OPENINGS.get(word[0])
        if inside is not None:
            if word[0] not in inside.closings:
                continue
            inside, border = None, _add(thoughts, begun, word.end())
        elif opens and (not opens.start or (word.start() == first and _GLUED.match(plain, word.end()))):
            if last.get(opens, -1) > word.start():
                inside, begun = opens, word.start()
            elif not opens.words:
                unclosed = min(unclosed, word.start())
        elif any(mark.absent and (unclosed == len(text) or mark.tag) for mark in _CLOSINGS.get(word[0], ())):
            border = _add(thoughts, min(border, unclosed), word.end())
            unclosed = len(text)
    if unclosed < len(text):
        _add(thoughts, unclosed, len(text))
    return thoughts


def _add(thoughts: list[tuple[int, int]], start: int, end: int) -> int:
    """Add a thought, joined with those that it touches; return its end."""
    while thoughts and thoughts[-1][1] >= start:
        start = min(start, thoughts.pop()[0])
    thoughts.append((start, end))
    return end


def _measure(text: str) -> tuple[list[tuple[int, int]], int, int]:
    """Return the thoughts in the read part of a reply, its length, and that without them."""
    thoughts = find_thoughts(text[:MAX_RAW])
    size = at = 0
    for number, (start, end) in enumerate(thoughts):
        more = start - at + (start > 0)  # room for a sign in the thought's place
        if size + more > MAX_REPLY:
            thoughts = thoughts[:number]
            break
        size, at = size + more, end
    length = min(len(text), MAX_RAW, at + MAX_REPLY - size)
    return thoughts, length, size + length - at


def blank_thoughts(text: str) -> str:
    """Return the part of a reply that is read, with spaces for thoughts, so that positions stay."""
    thoughts, length, _ = _measure(text)
    return _join(text, thoughts, length, lambda thought: " " * len(thought))


def shorten(text: str) -> str:
    """Return a reply in at most `MAX_REPLY` characters, of which the same is read.

    Thoughts are shortened in the middle, which a note says, or left out.

    >>> text = f"<think>{'hm ' * 9000}</think> <action>left</action>"
    >>> len(shorten(text)), shorten(text)[-30:]
    (16384, '</think> <action>left</action>')
    """
    if len(text) <= MAX_REPLY:
        return text
    thoughts, length, size = _measure(text)
    share = (MAX_REPLY - size) // max(len(thoughts), 1)
    if share >= _SHORTEST:
        short = _join(text, thoughts, length, lambda thought: _cut(thought, share))
        if blank_thoughts(short).split() == blank_thoughts(text).split():  # else marks got lost
            return short
    gaps = _join(text, thoughts, length, lambda _: _GAP)
    return gaps.removeprefix(_GAP) if thoughts and not thoughts[0][0] else gaps


def _cut(thought: str, most: int) -> str:
    if len(thought) <= most:
        return thought
    note = f"\n[... {len(thought):,} characters of thought, shortened ...]\n"
    head = (most - len(note)) // 2
    return thought[:head] + note + thought[head + len(note) - most :]


def _join(text: str, thoughts: list[tuple[int, int]], length: int, write: Callable[[str], str]) -> str:
    """Return the first `length` characters of a text, its thoughts as `write` gives them."""
    parts: list[str] = []
    at = 0
    for start, end in thoughts:
        parts += text[at:start], write(text[start:end])
        at = end
    return "".join(parts) + text[at:length]
