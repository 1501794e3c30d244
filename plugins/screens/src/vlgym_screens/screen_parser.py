"""The parser `screen`: reads the forms in which computer-use models write actions on a screen.

The first complete claim of a legal action counts. Every form is turned into one spelling:
`click(500, 300)`, `click 7`, `type("words")`, `scroll(down)`, `back()`, `zoom(500, 300)`,
`zoom_out()`, `answer("words")`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vlgym.parsers.claims import Claim, ClaimParser
from vlgym.parsers.json_reply import find_objects

_VERBS = {
    "click": "click leftclick leftsingle tap mouseclick clickat clickabsolute press",
    "type": "type typetext inputtext write",
    "scroll": "scroll scrolldocument scrollat mousescroll",
    "swipe": "swipe",
    "back": "back goback pressback navigateback systembutton",
    "zoom": "zoom zoomin imagezoomintool lookcloser",
    "zoom_out": "zoomout",
    "answer": "answer finished response respond finish",
}
VERB = {word: verb for verb, words in _VERBS.items() for word in words.split()}
"""Name of an action without case and joints -> our verb."""
_JOINTS = r"(?<=[a-z])(?=(?:click|single|at|text|absolute|back|button|in|out|document|zoom|closer)(?:_|$|[a-z]))"
_NAMES = "|".join(sorted((re.sub(_JOINTS, "_?", word) for word in VERB), key=len, reverse=True))
_ARGUMENTS = r"""(?:"(?:[^"\\\n]|\\.){0,400}+"|'(?:[^'\\\n]|\\.){0,400}+'|\((?:[^()\n"']){0,80}+\)|[^()"'\n]){0,120}+"""
_CALL = re.compile(
    rf"(?<![A-Za-z_])(?P<name>{_NAMES})[ \t]{{0,2}}(?:\((?P<round>{_ARGUMENTS})\)|\[(?P<square>[^\[\]\n]{{1,400}})\]"
    r"|<point>(?P<point>[^<>]{1,60})</point>|[ \t](?P<mark>\d{1,4})(?=[ \t]{0,3}(?:\Z|\n|[<\"'*`]|\.(?!\d))))"
    r"|<function=(?P<function>\w{1,40})>(?P<xml>[^\0]{0,600}?)</function>",
    re.IGNORECASE,
)
_DO = re.compile(
    rf"(?<!\w)do\([ ]{{0,2}}action=[\"'](?P<name>[A-Za-z ]{{1,20}})[\"'](?P<round>{_ARGUMENTS})\)", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d{1,6}(?:\.\d{1,6})?(?![\w])")
_NAMED = re.compile(r"[A-Za-z_]\w{0,20}\s{0,3}=[^,]{0,40}")
_XY = re.compile(r"(?<!\w)([xy])[\"']?\s{0,3}[=:]\s{0,3}[\"']?([-+]?\d{1,6}(?:\.\d{1,6})?)")
_PLACE = re.compile(
    r"(?:start_box|point|box|coordinate|position|element|region|bbox_2d)[\"']?>?\s{0,3}[=:]?\s{0,3}([^=]{1,100})",
    re.IGNORECASE,
)
_STRING = re.compile(
    r"(?:(?:content|text|message|value|answer)[\"']?\s{0,3}[=:]\s{0,3})?"
    r"(?:\"((?:[^\"\\\n]|\\.){0,400}+)\"|'((?:[^'\\\n]|\\.){0,400}+)')"
)
_PARAMETER = re.compile(r"<parameter=(?:content|text|answer)>([^<]{0,400})</")
_WAY = re.compile(r"\b(up|down)\b", re.IGNORECASE)
_COORDINATES = (
    "coordinate", "point", "position", "start_box", "box", "element", "region", "bbox_2d", "bbox", "point_2d",
)  # fmt: skip
_TEXTS = ("text", "content", "value", "answer", "message", "input_text")


class ScreenParser(ClaimParser):
    """Reads the first legal click or other action of a screen, in any of the known forms.

    >>> ScreenParser().parse("Thought: the star. Action: click(start_box='(500,300)')").actions
    ('click(500, 300)',)
    >>> call = '{"arguments": {"action": "left_click", "coordinate": [5, 3]}}'
    >>> ScreenParser().parse(call).actions
    ('click(5, 3)',)
    """

    name = "screen"
    version = 1

    def list_claims(self, text: str, legal: Sequence[str]) -> Iterator[Claim]:
        return _list_claims(text)

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action on a line."""
        action = actions[-1] if actions else ""
        return f"{thoughts}\n{action}" if thoughts else action

    def describe(self) -> str:
        """The reply format in words."""
        return "Think briefly, then end your reply with one of the actions, written as they are listed."


class BareParser(ScreenParser):
    """Reads as `ScreenParser`, and asks for the action alone, as models of grounding answer."""

    name = "screen-bare"

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write the (single) action."""
        return super().format(actions)

    def describe(self) -> str:
        """The reply format in words."""
        return "Reply with one of the actions alone, written as they are listed."


def _list_claims(text: str) -> Iterator[Claim]:
    """Yield the claims in their order; what stands in a JSON object that claims is no call."""
    claims = [
        Claim((action,), start, stop, stop)
        for value, start, stop in find_objects(text)
        if (action := _read_object(value, 0))
    ]
    taken = [(claim.start, claim.stop) for claim in claims]
    for pattern in (_CALL, _DO):
        for match in pattern.finditer(text):
            start, stop = match.span()
            if not any(begin <= start < end for begin, end in taken) and (action := _read_call(match)):
                claims.append(Claim((action,), start, stop, stop))
    yield from sorted(claims, key=lambda claim: claim.start)


def _find_verb(name: str) -> str:
    return VERB.get(re.sub(r"[\W_]", "", name).casefold(), "")


def _read_call(match: re.Match[str]) -> str:
    parts = match.groupdict()
    verb = _find_verb(parts["name"] or parts.get("function") or "")
    if parts.get("mark"):
        return f"click {int(parts['mark'])}" if verb == "click" else ""

    # The arguments, in whichever brackets they stand.
    forms = (parts.get(name) for name in ("round", "square", "point", "xml"))
    written = next((form for form in forms if form is not None), "")
    if verb in ("click", "zoom"):
        return _spell(verb, _find_numbers(written))

    # Words stand in quotes, in a parameter, or in square brackets.
    if verb in ("type", "answer"):
        quoted = _STRING.search(written)
        if quoted:
            words = next((group for group in quoted.groups() if group is not None), "")
            return _quote(verb, re.sub(r"\\(.)", r"\1", words.replace(r"\n", " ")))
        if parameter := _PARAMETER.search(written):
            return _quote(verb, parameter.group(1))
        return _quote(verb, written) if parts.get("square") else ""

    if verb in ("scroll", "swipe"):
        numbers = [float(number) for number in _NUMBER.findall(written)]
        if way := _WAY.search(written):
            return _turn(verb, way.group(1).lower())
        return _scroll(numbers[0]) if verb == "scroll" and numbers and numbers[0] else ""
    return f"{verb}()" if verb else ""


def _find_numbers(written: str) -> list[float]:
    named = dict(_XY.findall(written))
    if {"x", "y"} <= named.keys():
        return [float(named["x"]), float(named["y"])]
    place = _PLACE.search(written)
    return [float(number) for number in _NUMBER.findall(place.group(1) if place else _NAMED.sub("", written))]


def _spell(verb: str, numbers: Sequence[float]) -> str:
    """Return a click or zoom at a point, at the centre of a box, or at a mark."""
    if len(numbers) == 1 and verb == "click":
        return f"click {round(numbers[0])}"
    if len(numbers) < 2:
        return ""
    x, y = numbers[:2]
    if len(numbers) == 4:
        x, y = (x + numbers[2]) / 2, (y + numbers[3]) / 2
    return f"{verb}({x:g}, {y:g})"


def _turn(verb: str, way: str) -> str:
    """A swipe goes the other way: the finger moves up to show what is lower."""
    return f"scroll({way})" if verb == "scroll" else f"scroll({'down' if way == 'up' else 'up'})"


def _scroll(amount: float) -> str:
    """A positive amount is up, as in pyautogui and Qwen's tools."""
    return f"scroll({'up' if amount > 0 else 'down'})"


def _quote(verb: str, words: str) -> str:
    return f"{verb}({json.dumps(' '.join(words.split()), ensure_ascii=False)})"


def _read_object(value: Any, depth: int) -> str:
    """Return the first action that a JSON value states, or nothing."""
    if isinstance(value, list):
        inside = value[:20] if depth < 5 else []
        return next(filter(None, (_read_object(each, depth + 1) for each in inside)), "")
    if not isinstance(value, Mapping) or depth > 5:
        return ""
    names = (value.get(key) for key in ("action", "action_type", "type", "name"))
    name = next((each for each in names if isinstance(each, str)), "")

    # Arguments of a call may be an object that acts, or a text that holds one.
    inner = value.get("arguments", value.get("parameters", value.get("input")))
    if isinstance(inner, str) and "{" in inner:
        inner = next((each for each, _, _ in find_objects(inner)), None)
    if isinstance(inner, Mapping) and (claim := _read_object(inner, depth + 1)):
        return claim

    # The object itself acts, or one of its values does.
    verb = _find_verb(name)
    if verb:
        return _read_fields(verb, {**value, **inner} if isinstance(inner, Mapping) else value)
    if call := _CALL.fullmatch(name.strip()):
        return _read_call(call)
    return next((claim for each in value.values() if (claim := _read_object(each, depth + 1))), "")


def _read_fields(verb: str, value: Mapping[str, Any]) -> str:
    """Return the action of an object whose name says the verb."""
    if verb in ("click", "zoom"):
        if isinstance(value.get("x"), int | float) and isinstance(value.get("y"), int | float):
            return _spell(verb, [value["x"], value["y"]])
        mark = value.get("mark", value.get("index"))
        place = next((value[key] for key in _COORDINATES if key in value), mark)
        return _spell(verb, [float(number) for number in _NUMBER.findall(str(place))])
    if verb in ("type", "answer"):
        texts = (value.get(key) for key in _TEXTS)
        words = next((each for each in texts if isinstance(each, str | int | float)), None)
        return "" if words is None else _quote(verb, str(words))

    # A direction, an amount, or both ends of a swipe.
    if verb in ("scroll", "swipe"):
        way = str(value.get("direction", value.get("scroll_direction", ""))).lower()
        if way in ("up", "down"):
            return _turn(verb, way)
        if value.get("scroll_y"):  # OpenAI's: positive is down
            down = value["scroll_y"]
            return _scroll(-float(down)) if isinstance(down, int | float) else ""
        if isinstance(value.get("pixels"), int | float) and value["pixels"]:
            return _scroll(value["pixels"])
        ends: list[Any] = [value.get("coordinate"), value.get("coordinate2")]
        if all(isinstance(end, list) and len(end) == 2 and isinstance(end[1], int | float) for end in ends):
            return _scroll(ends[1][1] - ends[0][1]) if ends[0][1] != ends[1][1] else ""
        return ""
    if verb == "back" and str(value.get("button", "back")).casefold() != "back":
        return ""
    return f"{verb}()"
