"""The parts of the families' pages that are made from the environments' classes.

`<!-- card: MODULE CLASS: Actions, Reward -->`   these sections of the class docstring
`<!-- options: MODULE CLASS -->`                  a table of the constructor's arguments, from signature and docstring
"""

from __future__ import annotations

import importlib
import inspect
import re

from vlgym.env import VLEnv

MARK = re.compile(r"(<!-- (card|options): (\S+) (\w+)(?:: ([^>]*?))? -->)(?:\n[^\n].*?\n<!-- end -->)?", re.DOTALL)
FIELD = re.compile(r"^(\w[\w ]*?|Options of `reset`):(?:\s+|$)(.*)", re.DOTALL)


def fill_in(text: str) -> str:
    """Put what each mark asks for below it."""

    def replace(match: re.Match[str]) -> str:
        cls = getattr(importlib.import_module(match[3]), match[4])
        body = write_card(cls, match[5].split(", ")) if match[2] == "card" else write_options(cls)
        return f"{match[1]}\n{body}\n<!-- end -->"

    return MARK.sub(replace, text)


def write_card(cls: type, sections: list[str]) -> str:
    """The named sections of the docstring, as a list.

    Raises:
        KeyError: the docstring has no such section.
    """
    found = {match[1]: " ".join(match[2].split()) for block in _blocks(cls) if (match := FIELD.match(block))}
    return "\n".join(f"- **{name}**: {found[name]}" for name in sections)


def write_options(cls: type) -> str:
    """A table of the constructor's own arguments.

    Raises:
        ValueError: the docstring lacks an argument, or describes one that there is not.
    """
    (block,) = [block for block in _blocks(cls) if block.startswith("Args:")]
    meanings = {}
    for item in re.split(r"\n(?=    [\w*]+: )", block)[1:]:
        name, _, meaning = " ".join(item.split()).partition(": ")
        meanings[name] = meaning
    meanings.pop("**kwargs", None)  # those of every environment
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    for name in parameters.keys() & inspect.signature(VLEnv).parameters.keys():
        meanings.setdefault(name, "as in every environment, with another default.")
    if parameters.keys() != meanings.keys():
        raise ValueError(f"{cls.__name__}: Args has {sorted(meanings)}, the constructor {sorted(parameters)}.")
    rows = [f"| `{name}` | {_default(parameters[name].default)} | {meanings[name]} |" for name in parameters]
    return "\n".join(["| argument | default | meaning |", "|---|---|---|", *rows])


def _blocks(cls: type) -> list[str]:
    """The docstring's sections and paragraphs: a line that is not indented begins one where a section or gap ends."""
    text = inspect.getdoc(cls) or ""
    return [block.strip("\n") for block in re.split(r"\n\n|\n(?=\w[\w ]*:(?:\s|$))", text) if block.strip()]


def _default(value: object) -> str:
    return "none" if value is None else f"`{value}`" if not isinstance(value, str) else f'`"{value}"`'
