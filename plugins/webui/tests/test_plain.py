"""The descriptions without looks: what they leave to the pictures, and what they must still say. No browser."""

from __future__ import annotations

import re

import pytest
from vlgym_webui.plugin import PROJECTS
from vlgym_webui.project import PRIVATE_FILES, list_projects, load_project

from vlgym.registry.making import make

COLOURS = (
    "amber|aqua|azure|beige|black|blue|brown|crimson|cyan|gold|gray|green|grey|indigo|ivory|khaki|lavender|lime|magenta|"
    "maroon|navy|olive|orange|pink|purple|red|rose|silver|teal|turquoise|violet|white|yellow"
)
COLOUR = re.compile(rf"\b(?:{COLOURS})\b", re.IGNORECASE)
HEX = re.compile(r"(?<!&)#[0-9a-f]{3}", re.IGNORECASE)
"""A colour; `&#9733;` is a sign."""
SIZE = re.compile(
    r"\d\s*(?:px|pixels?|%|percent|degrees?|em|rem|pt|cm|vh|vw)(?![a-z])|rgba?\(|\d\s*x\s*\d", re.IGNORECASE
)
LOOKS = re.compile(r"\b(?:bold|italic|Liberation|font|corners|padding|margin|gradient|shadow|gaps?|wide|high)\b")
QUOTED = re.compile(r"\"([^\"]*)\"")


def quote(text: str) -> list[str]:
    return [words for words in QUOTED.findall(text) if not HEX.match(words)]


def find_headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("# ", "## "))]


@pytest.mark.parametrize("name", PROJECTS)
def test_a_plain_description_holds_no_looks_and_all_words_names_and_times(name: str) -> None:
    project = load_project(name)
    plain, full = project.plain, project.description
    bare = QUOTED.sub('""', plain)
    for looks, text in ((HEX, plain), (COLOUR, bare), (SIZE, bare), (LOOKS, bare)):
        assert not looks.findall(text)
    assert quote(plain) == quote(full)
    assert find_headings(plain) == find_headings(full)
    for pattern in (r"\b(?:class|classes|id|ids) ([a-z][a-z0-9-]*)", r"(\d[\d.]* s)\b"):
        assert set(re.findall(pattern, QUOTED.sub('""', full))) <= set(re.findall(pattern, bare)), pattern


def test_the_version_decides_which_description_the_prompt_holds() -> None:
    for env_id, looks in (("vlgym/WebUI-v0", True), ("vlgym/WebUI-v1", False)):
        env = make(env_id, project="accordion")
        text = env.reset(seed=0)[0]["text"]
        assert ("#fff8f0" in text) is looks
        assert "Which flour is best?" in text
        env.close()


def test_the_plain_description_is_no_file_of_the_page() -> None:
    assert "plain.md" in PRIVATE_FILES
    assert not any("plain.md" in load_project(name).files for name in list_projects())
