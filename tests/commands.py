"""Find every command that a text shows, and give it to the command's own parser without running it.

Commands stand in three places: each line of a fenced block without a language (such a block holds nothing else), an
indented line that begins like one, and a span in backticks that begins like one. `find` also fails on a command that
stands anywhere else, so that none is missed in silence. What follows is checked: `vlgym`, `make`, `python -m MODULE`,
`python FILE`, `torchrun`, `pip install` and `apt-get install`; any other program is an error.
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import re
import runpy
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from vlgym.cli.app import app
from vlgym.installing import RELEASED, how_to_install
from vlgym.registry_file import read_registry

ROOT = Path(__file__).parent.parent
HARMLESS = {"git clone <this repository> vlgym", "cd vlgym", ". .venv/bin/activate"}
DIRECTIVE = re.compile(r"^```\{.*?^```$", re.DOTALL | re.MULTILINE)
"""A block for the documentation site (MyST): a list of pages, or docstrings."""
FENCE = re.compile(r"^```(\w*)\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
"""Code within a text: it ends with as many backticks as it begins with."""
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PIP_TAKES_A_VALUE = {"-c", "--extra-index-url"}
PROGRAM = re.compile(r"(?:\w+=\S+ )*(?:python3?|vlgym|torchrun|make|pip|apt-get) ")
LINE = re.compile(
    r"\s+(?:\w+=\S+ )*(?:python3? (?:-m |\S+\.py)|torchrun -|vlgym [a-z-]+(?: |$)|pip install|apt-get install|"
    r"make [a-z-]+(?:\s+#|$))"
)
LOOSE = re.compile(
    r"python3? -m \w+|python3? \S+\.py\b|torchrun -\S+|(?<!Usage: )\bvlgym (?:"
    + "|".join(get_command(app).commands)  # type: ignore[attr-defined]
    + r")\b"
)


@dataclass(frozen=True)
class Command:
    """One shown command; a `mention` is the bare name of one, in a sentence."""

    words: tuple[str, ...]
    mention: bool
    where: str


class Wrong(Exception):
    """A shown command does not exist, or its parser refuses it."""


class _Parsed(BaseException):
    """Raised in place of running a program whose parser has accepted the words."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield (place, text) for every page, and for every docstring of modules, classes, functions and fields."""
    folders = ("vlgym", "baselines", "plugins", "docs", "tests/benchmarks", "tests/fixtures")
    for folder in (*folders, ".ci"):
        for page in sorted((ROOT / folder).rglob("*.md")):
            yield str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    for page in sorted(ROOT.glob("*.md")):
        yield page.name, page.read_text(encoding="utf-8")
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                value = node.value if isinstance(node, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield f"{path.relative_to(ROOT)}:{value.lineno}", inspect.cleandoc(value.value)


def find(text: str, where: str = "") -> list[Command]:
    """Return the commands that a text shows.

    Raises:
        Wrong: something that looks like a command stands where commands are not looked for.
    """
    found: list[Command] = []

    def from_fence(match: re.Match[str]) -> str:
        if match[1] == "text":
            return match[2]
        if not match[1]:
            for line in match[2].splitlines():
                found.extend(_commands(line, where, mention=False))
        return ""

    def from_span(match: re.Match[str]) -> str:
        span = " ".join(match[2].split())
        if not PROGRAM.match(span + " ") or " " not in span or span == "python -m":  # the name of a program alone
            return match[0]
        words = shlex.split(span)
        bare = len(words) == (3 if words[1] == "-m" else 2)
        found.extend(_commands(span, where, mention=bare))
        return ""

    rest = []
    for line in FENCE.sub(from_fence, DIRECTIVE.sub("", text)).splitlines():
        if LINE.match(line):
            found.extend(_commands(line, where, mention=False))
        else:
            rest.append(line)
    loose = LOOSE.search(SPAN.sub(from_span, "\n".join(rest)))
    if loose:
        raise Wrong(
            f"{where}: {loose[0]!r} stands neither in backticks nor in a line of its own; or the line before it was "
            "wrapped."
        )
    return found


def check(command: Command) -> None:
    """Let a command's own parser read it.

    Raises:
        Wrong: no such program, module, file or target, or the parser refuses the words.
    """
    program, *words = command.words
    words = ["1" if word == "N" else word for word in words]
    if program not in CHECKS:
        raise Wrong(f"{shlex.join(command.words)}: {program!r} is none of {', '.join(CHECKS)}")
    try:
        _check_ids(words)
        CHECKS[program](words, command.mention)
    except Wrong as error:
        raise Wrong(f"{command.where}: {shlex.join(command.words)}: {error}") from None


def _commands(line: str, where: str, *, mention: bool) -> Iterator[Command]:
    for part in line.split("&&"):
        if part.strip() in HARMLESS:
            continue
        words = shlex.split(part, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words = words[1:]
        if words:
            yield Command(tuple(words), mention, where)


def _check_ids(words: list[str]) -> None:
    known = read_registry()
    unknown = [found for word in words for found in re.findall(r"\bvlgym/\w+-v\d+", word) if found not in known]
    if unknown:
        raise Wrong(f"there is no environment {unknown[0]}")


def _check_vlgym(words: list[str], mention: bool) -> None:
    command: Any = get_command(app)
    context, name = None, "vlgym"
    try:
        while hasattr(command, "commands"):
            if not words:
                return
            context = command.make_context(name, words, parent=context)
            words = [*context._protected_args, *context.args]
            name, command, words = command.resolve_command(context, words)
        if not mention:
            command.make_context(name, words, parent=context)
    except Exception as error:  # the vendored click's own errors: usage, missing argument, bad value
        raise Wrong(error.format_message() if hasattr(error, "format_message") else repr(error)) from None


def _check_make(words: list[str], mention: bool) -> None:
    wrong = [word for word in words if word not in TARGETS and not re.fullmatch(r"[A-Z]+=\S+", word)]
    if wrong:
        raise Wrong(f"the Makefile has no target {wrong[0]!r}")


@functools.cache
def _written() -> set[str]:
    """Folders of the plugins that a shown `vlgym new-plugin` writes."""
    names = {name for _, text in texts() for name in re.findall(r"^vlgym new-plugin ([\w-]+)", text, re.MULTILINE)}
    return {f"vlgym-{name}" for name in names}


def _check_pip(words: list[str], mention: bool) -> None:
    from packaging.requirements import Requirement

    names = {path.name for path in (ROOT / "plugins").iterdir()}
    if words[:1] != ["install"]:
        raise Wrong("only `pip install` is known")
    for before, word in pairwise(words):
        if word in {"-e", "--no-deps", "--upgrade", *PIP_TAKES_A_VALUE} or before in PIP_TAKES_A_VALUE:
            continue
        if before == "-e":
            if word not in _written() and not (ROOT / word.partition("[")[0] / "pyproject.toml").is_file():
                raise Wrong(f"{word} is no folder of a distribution")
            continue
        wanted = Requirement(word)
        if wanted.name.startswith("vlgym-") and wanted.name.removeprefix("vlgym-") not in names:
            raise Wrong(f"there is no distribution {wanted.name}")
        if wanted.name == "vlgym" and not wanted.extras <= names | {"all", "eval", "train"}:
            raise Wrong(f"vlgym has no extra {wanted.extras}")
        if not RELEASED and wanted.name.split("-")[0] == "vlgym":
            raise Wrong(f"{wanted.name} is on no package index yet; {how_to_install(word, here=ROOT)}")


def _check_apt(words: list[str], mention: bool) -> None:
    needed = {name for entry in read_registry().values() for name in entry["spec"].system_requirements}
    unknown = set(words) - needed - {"install", "-y"}
    if unknown or words[:1] != ["install"]:
        raise Wrong(f"no environment's card asks for {', '.join(sorted(unknown))}")


def _check_torchrun(words: list[str], mention: bool) -> None:
    from torch.distributed.run import get_args_parser

    try:
        asked = get_args_parser().parse_args(words)
    except SystemExit:
        raise Wrong("torchrun's parser refuses it") from None
    _check_python([*(["-m"] if asked.module else []), asked.training_script, *asked.training_script_args], mention)


def _check_python(words: list[str], mention: bool) -> None:
    if words[:2] == ["-m", "pip"]:
        return _check_pip(words[2:], mention)
    if words[:1] == ["-m"]:
        name, arguments = words[1], words[2:]
        path, run = _source_of(name), lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif words and words[0].endswith(".py"):
        path, arguments = ROOT / words[0], words[1:]
        run = lambda: runpy.run_path(str(path), run_name="__main__")  # noqa: E731
    else:
        raise Wrong("neither `-m MODULE` nor a file")
    if not path.is_file():
        raise Wrong(f"there is no {path.relative_to(ROOT)}")
    source = path.read_text(encoding="utf-8")
    if "__main__" not in source and path.name != "__main__.py":
        raise Wrong("nothing there runs as a program")
    if mention:
        return None
    if "sys.argv" in source and "parse_args" not in source:  # it takes words alone, and would run
        if any(word.startswith("-") for word in arguments):
            raise Wrong("it takes no options")
        return None
    with patch.object(sys, "argv", [str(path), *arguments]), patch.object(sys, "path", [str(path.parent), *sys.path]):
        _parse(run)
    if words[0] != "-m":  # modules beside a script bear everyday names
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(f"{path.parent}/"):
                del sys.modules[name]
    return None


def _source_of(module: str) -> Path:
    """The file that `python -m` would run."""
    for base in (ROOT, *ROOT.glob("plugins/*/src")):
        path = base.joinpath(*module.split("."))
        for candidate in (path.with_suffix(".py"), path / "__main__.py"):
            if candidate.is_file():
                return candidate
    raise Wrong(f"there is no module {module}")


def _parse(run: Callable[[], Any]) -> None:
    """Run a program up to the moment when its parser has read the words; `--help` counts as read."""
    import tyro

    read_argparse, read_tyro = argparse.ArgumentParser.parse_args, tyro.cli

    def stop_after_argparse(self: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> Any:
        read_argparse(self, *args, **kwargs)
        raise _Parsed

    def stop_after_tyro(*args: Any, **kwargs: Any) -> Any:
        with patch.object(argparse.ArgumentParser, "parse_args", read_argparse):
            read_tyro(*args, **kwargs)
        raise _Parsed

    try:
        with (
            warnings.catch_warnings(),
            patch.object(argparse.ArgumentParser, "parse_args", stop_after_argparse),
            patch.object(tyro, "cli", stop_after_tyro),
        ):
            warnings.simplefilter("ignore")
            run()
    except _Parsed:
        return
    except SystemExit as stop:
        if stop.code in (0, None):
            return
        raise Wrong(f"its parser refuses it (exit status {stop.code})") from None
    raise Wrong("it ran without reading its arguments")


CHECKS: dict[str, Callable[[list[str], bool], Any]] = {
    "vlgym": _check_vlgym,
    "make": _check_make,
    "python": _check_python,
    "python3": _check_python,
    "torchrun": _check_torchrun,
    "pip": _check_pip,
    "apt-get": _check_apt,
}
