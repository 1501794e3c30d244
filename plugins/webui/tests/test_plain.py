"""The descriptions without looks leave those to the pictures, and nothing else."""

from __future__ import annotations

import re

import pytest
from vlgym_webui.plugin import PROJECTS
from vlgym_webui.project import load_project

from vlgym.registry.making import make

COLOURS = (
    "amber|aqua|azure|beige|black|blue|brown|crimson|cyan|gold|gray|green|grey|indigo|ivory|khaki|lavender|lime|magenta|"
    "maroon|navy|olive|orange|pink|purple|red|rose|silver|teal|turquoise|violet|white|yellow"
)
COLOUR = re.compile(rf"\b(?:{COLOURS})\b", re.IGNORECASE)
HEX = re.compile(r"(?<!&)#[0-9a-f]{3}", re.IGNORECASE)  # a colour; `&#9733;` is a sign
UNITS = "px|pixels?|%|percent|degrees?|em|rem|pt|cm|vh|vw"
SIZE = re.compile(rf"\d\s*(?:{UNITS})(?![a-z])|rgba?\(|\d\s*x\s*\d", re.IGNORECASE)
LOOKS = re.compile(r"\b(?:bold|italic|Liberation|font|corners|padding|margin|gradient|shadow|gaps?|wide|high)\b")
QUOTED = re.compile(r"\"([^\"]*)\"")
HEADING = re.compile(r"^##? .*$", re.MULTILINE)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_plain_description_holds_no_looks_and_all_words_names_and_times(name: str) -> None:
    project = load_project(name)
    assert not any("plain.md" in file for file in project.files), "it is a file of the page"
    plain, full = project.plain, project.description
    bare, bare_full = QUOTED.sub('""', plain), QUOTED.sub('""', full)
    for looks, text in ((HEX, plain), (COLOUR, bare), (SIZE, bare), (LOOKS, bare)):
        assert not looks.findall(text)
    assert QUOTED.findall(plain) == [words for words in QUOTED.findall(full) if not HEX.match(words)]
    assert HEADING.findall(plain) == HEADING.findall(full)
    for pattern in (r"\b(?:class|classes|id|ids) ([a-z][a-z0-9-]*)", r"(\d[\d.]* s)\b"):
        assert set(re.findall(pattern, bare_full)) <= set(re.findall(pattern, bare)), pattern


def test_the_version_decides_which_description_the_prompt_holds() -> None:
    for env_id, looks in (("vlgym/WebUI-v0", True), ("vlgym/WebUI-v1", False)):
        env = make(env_id, project="accordion")
        text = env.reset(seed=0)[0]["text"]
        assert ("#fff8f0" in text) is looks
        assert "Which flour is best?" in text
        env.close()
