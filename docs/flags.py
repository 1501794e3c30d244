"""The parts of docs/baselines/ that are made from the learners' code: flags, docstrings, presets.

`<!-- flags: MODULE CLASS -->`   a table of a configuration's own flags: those it adds or gives another default
`<!-- docstring: MODULE -->`     the module's docstring
`<!-- presets -->`               every preset with the source of each value
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

MARK = re.compile(
    r"(<!-- (flags|docstring|presets):? ?(\S*) ?(\S*) -->)(?:\n<!-- from here -->.*?<!-- to here -->)?", re.DOTALL
)


def fill_in(text: str) -> str:
    """Put what each mark asks for below it."""

    def replace(match: re.Match[str]) -> str:
        kind, module, name = match.group(2), match.group(3), match.group(4)
        if kind == "flags":
            body = flag_table(getattr(importlib.import_module(module), name))
        elif kind == "docstring":
            body = f"```text\n{inspect.getdoc(importlib.import_module(module))}\n```"
        else:
            body = preset_tables()
        return f"{match.group(1)}\n<!-- from here -->\n{body}\n<!-- to here -->"

    return MARK.sub(replace, text)


def flag_table(config: type) -> str:
    """The flags that a configuration adds to its bases, or gives another default or meaning."""
    lines = ["| flag | default | meaning |", "|---|---|---|"]
    lines += [f"| `{flag}` | {_show(default)} | {meaning} |" for flag, default, meaning in _flags(config, "", own=True)]
    return "\n".join(lines)


def _flags(config: type, prefix: str, *, own: bool) -> Iterator[tuple[str, Any, str]]:
    texts: dict[str, str] = {}
    for base in reversed(config.__mro__ if not own else [config]):
        if is_dataclass(base):
            texts |= _texts(base)
    for item in fields(config):
        if item.name not in texts:
            continue
        default = item.default if item.default is not MISSING else None
        if item.default is MISSING and item.default_factory is not MISSING:
            default = item.default_factory()
        flag = f"{prefix}{item.name.replace('_', '-')}"
        if is_dataclass(default):
            yield from _flags(type(default), f"{flag}.", own=False)
        elif item.default is MISSING and item.default_factory is MISSING:
            yield f"--{flag}", "required", texts[item.name]
        else:
            yield f"--{flag}", default, texts[item.name]


def _texts(config: type) -> dict[str, str]:
    """Field -> its docstring, of the fields written in this very class."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(config))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = " ".join(str(text.value.value).split()).replace("|", "\\|")
    return found


def _show(value: Any) -> str:
    if value == "required":
        return "required"
    return "none" if value is None or value == () else f"`{value}`"


def preset_tables() -> str:
    """A table per preset; what several presets share has a table of its own, once."""
    from baselines.learning.presets import COMMON, PRESETS

    sharing = [name for name, values in PRESETS.items() if COMMON.keys() <= values.keys()]
    parts = [_preset_table(f"Common to {', '.join(sharing)}", COMMON)]
    for name, values in PRESETS.items():
        own = {path: value for path, value in values.items() if name not in sharing or COMMON.get(path) != value}
        parts.append(_preset_table(f"{name}, beside the common values" if name in sharing else name, own))
    return "\n\n".join(parts)


def _preset_table(title: str, values: Mapping[str, tuple[Any, str]]) -> str:
    rows = [f"| `--{path.replace('_', '-')}` | `{value}` | {source} |" for path, (value, source) in values.items()]
    return "\n".join([f"### {title}", "", "| flag | value | source |", "|---|---|---|", *rows])
