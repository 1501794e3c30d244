"""Blind player of WebUI: it writes a page from the description alone, in one reply."""

import html
import re

from vlgym.sight.blind import BlindPlayer

_QUOTED = re.compile(r"\"([^\"]{1,200})\"(?:\s*\(([^)\"]*)\))?")
_COLOUR = re.compile(r"#[0-9a-f]{6}|#[0-9a-f]{3}\b", re.IGNORECASE)
_WIDTH = re.compile(r"(\d{2,4}) px(?: wide|, centred)")
_TOP = re.compile(r"(\d+) px from the top")
_ROUND = re.compile(r"(\d+) px corners")
_BORDER = re.compile(r"border (\d+) px (#[0-9a-f]{3,6})", re.IGNORECASE)
_SIZE = re.compile(r"(\d+) px")
_ACCORDION = re.compile(r"heading \"[^\"]+\"[^\"]*then three (?:white )?boxes")
_CLASS = re.compile(r"(?:^|\b)class ([a-z][a-z0-9-]*)|^([a-z]+-[a-z0-9]+)$")
_ANSWER = re.compile(r"shows its answer \(([^)]*)\)")
_PADDING = re.compile(r"padding ((?:\d+ px ?)+)")


class PageWriter(BlindPlayer):
    """Writes the same page at every turn, from the quotes in the description's first part.

    They stand one below the other, with the colours, sizes and classes that follow them; a
    described accordion is written as one. The default is black on white, in a column in the middle.
    """

    name = "from the description"

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        description = text.split("The page is compared at first")[0].replace("\n", " ")
        page = write_accordion(description) if _ACCORDION.search(description) else write_page(description)
        return "\n".join(f"```{language}\n{code}\n```" for language, code in page.items())


def write_page(description: str) -> dict[str, str]:
    """Return html, css and javascript of a page with the quotes before the first interaction."""
    description = description.split("## After")[0]
    lines, rules = [], [_style_column(description)]
    for number, (words, looks) in enumerate(_QUOTED.findall(description)):
        named = _CLASS.search(looks)
        classes = f"line-{number} {named[1] or named[2]}" if named else f"line-{number}"
        lines.append(f'<div class="{classes}">{html.escape(words)}</div>')
        rules.append(f".line-{number} {{ margin: 12px 0; {_style(looks)} }}")
    return _join(description, f"<main>{''.join(lines)}</main>", rules, "")


def write_accordion(description: str) -> dict[str, str]:
    """Return a page with a heading and boxes of a question and, when open, an answer."""
    # First the heading, then the questions; answers are the sentences shown later.
    before, *after = description.split("## After")
    (heading, heading_looks), *questions = _QUOTED.findall(before)
    quotes = [words for part in after for words, _ in _QUOTED.findall(part)]
    answers = [words for words in quotes if words.endswith((".", "!"))]
    pairs = zip(questions, [*answers, *[""] * 9], strict=False)
    boxes = "".join(
        f'<div class="box"><div class="question" id="q{number}">{html.escape(question)}</div>'
        f'<div class="answer">{html.escape(answer)}</div></div>'
        for number, ((question, _), answer) in enumerate(pairs, 1)
    )

    # The last question with colours has the looks of all.
    corners, border = _ROUND.search(before), _BORDER.search(before)
    shown = _ANSWER.search(" ".join(after))
    looks = next((words for _, words in reversed(questions) if _COLOUR.search(words)), "")
    padding = _PADDING.search(looks)
    inside = padding[1].replace(" px", "px").strip() if padding else ""
    rules = [
        _style_column(before),
        f"h1 {{ margin: 0 0 24px; {_style(heading_looks)} }}",
        ".box { margin-bottom: 12px; background: #ffffff; "
        + (f"border: {border[1]}px solid {border[2]}; " if border else "")
        + (f"border-radius: {corners[1]}px; " if corners else "")
        + "}",
        f".question {{ {f'padding: {inside}; ' if inside else ''}{_style(looks)} }}",
        ".answer { display: none; "
        + (f"padding: 0 {inside.split()[-1]} {inside.split()[0]}; " if inside else "")
        + f"{_style(shown[1] if shown else '')} }}",
        ".box.open .answer { display: block; }",
    ]
    opened = _COLOUR.findall(after[0]) if after else []
    if len(opened) > 1:
        rules.append(f".box.open {{ background: {opened[0]}; border-color: {opened[1]}; }}")

    # At most one box is open.
    script = (
        'document.querySelectorAll(".question").forEach((question) => question.addEventListener("click", () => {\n'
        '  document.querySelectorAll(".box").forEach((box) => {\n'
        '    box.classList.toggle("open", box === question.parentElement && !box.classList.contains("open"));\n'
        "  });\n}));"
    )
    return _join(before, f"<main><h1>{html.escape(heading)}</h1>{boxes}</main>", rules, script)


def _style_column(description: str) -> str:
    width, top = _WIDTH.search(description), _TOP.search(description)
    return f"main {{ width: {width[1] if width else 560}px; margin: {top[1] if top else 48}px auto; }}"


def _style(looks: str) -> str:
    size, colour = _SIZE.search(looks), _COLOUR.search(looks)
    style = [f"font-size: {size[1]}px"] if size else []
    style += [f"color: {colour[0]}"] if colour else []
    style += ["font-weight: 700"] if "bold" in looks else []
    return "; ".join(style)


def _join(description: str, body: str, rules: list[str], script: str) -> dict[str, str]:
    head = '<meta charset="utf-8"><link rel="stylesheet" href="style.css">'
    colour = _COLOUR.search(description)
    ground = colour[0] if colour else "#ffffff"
    look = f'background: {ground}; font-family: "Liberation Sans", Arial, sans-serif;'
    return {
        "html": f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}'
        '<script src="script.js"></script></body>\n</html>',
        "css": "\n".join(["* { box-sizing: border-box; }", f"body {{ margin: 0; {look} }}", *rules]),
        "javascript": f'"use strict";\n{script}',
    }
