"""docs/trouble.md quotes messages that the code says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sources import ROOT, list_files, read_tree

PAGE = (ROOT / "docs" / "trouble.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)


def messages(path: Path) -> list[str]:
    """The texts of a module; a value within one is `...`."""
    texts = []
    for node in ast.walk(read_tree(path)):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return texts


@pytest.fixture(scope="module")
def said() -> str:
    texts = [text for path in list_files("vlgym", "baselines", "plugins") for text in messages(path)]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return "\n".join([*texts, re.sub(r"\$\([A-Z_]+\)", "...", makefile)])


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_message_is_one_that_the_code_says(quoted: str, said: str) -> None:
    parts = [part for part in quoted.split("...") if part.strip()]
    assert parts
    assert re.search(r"[^\n]*?".join(re.escape(part.strip()) for part in parts), said), quoted


def test_the_page_quotes_messages_and_no_other_block_stands_for_one() -> None:
    assert len(QUOTED) > 10
    assert "](docs/trouble.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
