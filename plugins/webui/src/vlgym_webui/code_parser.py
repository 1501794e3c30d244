"""Code blocks in a reply, and the one form in which they are an action.

An action has at most one block each of html, css and javascript, in this order, fenced by three
backticks. Tags are read in any spelling (`js`, `HTML5`, `index.html`); the reply's end closes an
open fence; a heading that names a file serves for a missing tag; a bare HTML document is read, too.
No code is run or checked.
"""

import re
from collections.abc import Mapping, Sequence

from vlgym.types import Parsed

FILE_OF = {"html": "index.html", "css": "style.css", "javascript": "script.js"}
LANGUAGE_OF = {file: language for language, file in FILE_OF.items()}

# Possessive, without neighbours that match the same character: reading stays linear.
_FENCE = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)([^\n`]*+)$", re.MULTILINE)
_SPELLINGS = {
    "html": ("html", "html5", "htm", "xhtml", "xml", "svg"),
    "css": ("css", "css3", "scss", "style"),
    "javascript": ("javascript", "js", "jsx", "mjs", "es6", "ecmascript", "typescript", "ts", "script"),
}
_TAGS = {tag: language for language, tags in _SPELLINGS.items() for tag in tags}
_NAMES = {"write_html": "html", "write_css": "css", "write_javascript": "javascript", **LANGUAGE_OF}
_WORD = re.compile(r"[a-z_][a-z0-9_.]*")
_DOCUMENT = re.compile(r"<!doctype html|<html[\s>]", re.IGNORECASE)


class CodeBlockParser:
    """Reads all code blocks of a reply as one action."""

    name = "code_blocks"
    version = 1

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return an action, or failure `no_code_block`, `unknown_language` or `empty_code`."""
        code, start, failure = _read_blocks(text)
        if code:
            return Parsed(actions=(write_action(code),), span=(start, len(text.rstrip())))
        return Parsed(failure=failure)

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the code of all actions; of one language, the last counts."""
        code: dict[str, str] = {}
        for action in actions:
            code.update(read_action(action) or {})
        body = write_action(code) if code else ""
        return f"{thoughts}\n\n{body}" if thoughts else body

    def describe(self) -> str:
        return (
            "Think briefly, then write the code in fenced blocks: three backticks and html, css or "
            "javascript, the code, three backticks. A block replaces the whole file: html index.html, css "
            "style.css, javascript script.js. Files without a block stay as they are."
        )


def read_action(action: str) -> dict[str, str] | None:
    """Return file name -> code of a text with code blocks; `None` without one."""
    return _read_blocks(action)[0] or None


def write_action(code: Mapping[str, str]) -> str:
    """Return the action that writes these files, blocks in the order html, css, javascript."""
    blocks = [f"```{language}\n{code[file]}\n```" for language, file in FILE_OF.items() if file in code]
    return "\n".join(blocks)


def _read_blocks(text: str) -> tuple[dict[str, str], int, str]:
    """Return file name -> code, the first block's beginning, and the failure without one."""
    code: dict[str, str] = {}
    failure = "no_code_block"
    first = len(text)
    position = 0
    while (fence := _FENCE.search(text, position)) is not None:
        body_end, position = _find_close(text, fence)
        body = text[fence.end() : body_end].strip("\n").rstrip()
        language = _language(fence[2], text[max(0, fence.start() - 200) : fence.start()], body)
        if language is None:
            failure = "unknown_language"
        elif not body.strip():
            failure = "empty_code"
        else:
            code[FILE_OF[language]] = body
            first = min(first, fence.start())

    # A whole document without fences can mean only one thing.
    if not code and failure == "no_code_block" and (document := _DOCUMENT.search(text)):
        first = document.start()
        code["index.html"] = text[first:].strip()
    return code, first, failure


def _find_close(text: str, fence: re.Match[str]) -> tuple[int, int]:
    """Return where the code of an opening fence ends and where reading goes on."""
    for match in _FENCE.finditer(text, fence.end()):
        if match[1][0] == fence[1][0]:
            # A fence with a language tag opens the next block; the one before was left open.
            return match.start(), match.start() if match[2].strip() else match.end()
    return len(text), len(text)


def _language(tag: str, before: str, body: str) -> str | None:
    """Return html, css or javascript by the tag, else by a heading, else by the code."""
    word = _WORD.search(tag.lower())
    if word is not None:
        return _TAGS.get(word[0]) or _NAMES.get(word[0]) or _TAGS.get(word[0].rsplit(".", 1)[-1])

    # The last word of the heading that names a language or a file.
    lines = [line for line in before.splitlines() if line.strip()]
    for tag in reversed(_WORD.findall(lines[-1].lower()) if lines else []):
        if language := _NAMES.get(tag.rstrip(".")) or _TAGS.get(tag.rstrip(".")):
            return language

    # Without either: tags make html, statements javascript, braces after selectors css.
    if body.count("<") + body.count(">") > body.count("\n") + 1:
        return "html"
    if re.search(r"\b(?:function|const|let|var|document|window)\b|=>", body):
        return "javascript"
    return "css" if "{" in body and ":" in body else None
