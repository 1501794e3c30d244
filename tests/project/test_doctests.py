"""The examples in docstrings and on the pages (`>>>`) say what Python answers."""

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import ROOT, list_files, module_name, read_tree

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PROMPT = re.compile(r"^\s*>>> ", re.MULTILINE)
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
PLACES = ("*.md", "docs/**/*.md", "vlgym/**/*.md", "plugins/*/*.md")
PAGES = sorted(path for place in PLACES for path in ROOT.glob(place))
PARSER = doctest.DocTestParser()


def list_examples(path: Path) -> list[int]:
    """The lines of a module on which docstrings have an example; nothing is imported."""
    lines = []
    for node in ast.walk(read_tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False) or ""
            if PROMPT.search(text):
                start = node.body[0].lineno - 1  # type: ignore[attr-defined]
                lines += [start + example.lineno for example in PARSER.get_examples(text)]
    return sorted(lines)


def read_page(path: Path) -> doctest.DocTest:
    """The examples in the code blocks of a page, in one namespace."""
    blocks: Iterator[str] = (match[1] for match in FENCE.finditer(path.read_text(encoding="utf-8")))
    return PARSER.get_doctest("\n\n".join(blocks), {}, path.name, str(path), 0)


def run(*tests: doctest.DocTest) -> tuple[int, str]:
    """Return how many examples were run, and the faults of those that failed."""
    faults: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in tests:
        runner.run(test, out=faults.append)
    return runner.tries, "".join(faults)


def shows(path: Path) -> bool:
    return bool(PROMPT.search(path.read_text(encoding="utf-8")))


MODULES = [path for path in list_files("vlgym", "baselines", "plugins") if shows(path) and list_examples(path)]
SHOWN = [path for path in PAGES if shows(path)]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_the_examples_of_a_module_are_right(path: Path) -> None:
    module = importlib.import_module(module_name(path))
    count, wrong = run(*doctest.DocTestFinder(exclude_empty=True).find(module))
    assert wrong == ""
    assert count == len(list_examples(path)), "an example stands where doctest does not look"


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_the_examples_of_a_page_are_right(path: Path) -> None:
    count, wrong = run(read_page(path))
    assert wrong == ""
    assert count == len(PROMPT.findall(path.read_text(encoding="utf-8"))), "an example stands in no code block"
