"""The descriptions without looks: what they leave to the pictures, and what they must still say. No browser."""

from __future__ import annotations

import inspect
import random
import re
from pathlib import Path

import pytest
from vlgym_webui.blind import PageWriter
from vlgym_webui.plugin import PROJECTS
from vlgym_webui.project import PRIVATE_FILES, list_projects, load_project
from vlgym_webui.steps import Step
from vlgym_webui.web_ui import WebUI

from vlgym.errors import UserError
from vlgym.making import make

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
RANGES = {
    "seat-picker": {f"r{row}c{seat}" for row in range(1, 5) for seat in range(1, 8)},
    "tic-tac-toe": {f"c{n}" for n in range(1, 10)},
    "memory-game": {f"m{n}" for n in range(1, 9)},
    "calendar": {f"d{n}" for n in range(1, 29)},
    "calculator": {f"k{n}" for n in range(10)},
    "bar-chart": {f"b{n}" for n in range(1, 6)},
    "star-rating": {f"star-{n}" for n in range(1, 6)},
    "quiz": {f"a{n}" for n in range(1, 5)},
}
"""Names that a description gives by their first and last."""


def quote(text: str) -> list[str]:
    return [words for words in QUOTED.findall(text) if not HEX.match(words)]


def find_headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("# ", "## "))]


def list_names(steps: tuple[Step, ...]) -> set[str]:
    """Every class, id and element that the steps of an interaction point at."""
    return {name for step in steps for name in re.findall(r"[a-z][a-z0-9-]*", str(step.selector or ""))}


@pytest.mark.parametrize("name", PROJECTS)
def test_no_plain_description_holds_a_colour_a_size_or_another_look(name: str) -> None:
    plain = load_project(name).plain
    bare = QUOTED.sub('""', plain)
    assert not HEX.findall(plain)
    assert not COLOUR.findall(bare)
    assert not SIZE.findall(bare)
    assert not LOOKS.findall(bare)


def test_the_patterns_find_the_looks_of_every_full_description() -> None:
    for name in PROJECTS:
        bare = QUOTED.sub('""', load_project(name).description)
        assert COLOUR.search(bare) or HEX.search(bare), name
        assert SIZE.search(bare), name


@pytest.mark.parametrize("name", PROJECTS)
def test_texts_titles_and_interactions_are_those_of_the_full_description(name: str) -> None:
    project = load_project(name)
    assert quote(project.plain) == quote(project.description)
    assert find_headings(project.plain) == find_headings(project.description)
    assert len(project.plain) < len(project.description)


@pytest.mark.parametrize("name", PROJECTS)
def test_everything_that_an_interaction_points_at_is_named(name: str) -> None:
    project = load_project(name)
    wanted = {each for interaction in project.interactions for each in list_names(interaction.steps)}
    said = set(re.findall(r"[a-z][a-z0-9-]*", QUOTED.sub(" ", project.plain)))
    assert wanted <= said | RANGES.get(name, set())
    for first in RANGES.get(name, set()) & wanted:
        assert re.search(r"\b(?:ids?|classes)\b", project.plain), first


@pytest.mark.parametrize("name", PROJECTS)
def test_names_and_counts_of_the_full_description_are_all_kept(name: str) -> None:
    """What stands behind `class` or `id`, and every time that a page keeps."""
    project = load_project(name)
    for pattern in (r"\b(?:class|classes|id|ids) ([a-z][a-z0-9-]*)", r"(\d[\d.]* s)\b"):
        told = re.findall(pattern, QUOTED.sub('""', project.description))
        assert set(told) <= set(re.findall(pattern, QUOTED.sub('""', project.plain))), pattern


def test_the_version_decides_which_description_the_prompt_holds() -> None:
    for env_id, looks in (("vlgym/WebUI-v0", True), ("vlgym/WebUI-v1", False)):
        env = make(env_id, project="accordion")
        text = env.reset(seed=0)[0]["text"]
        assert ("#fff8f0" in text) is looks
        assert "Which flour is best?" in text
        env.close()


def test_an_unknown_form_of_description_is_refused() -> None:
    with pytest.raises(UserError, match="descriptions='short' is not one of looks, plain"):
        make("vlgym/WebUI-v0", descriptions="short")
    assert "descriptions" in inspect.signature(WebUI).parameters


def test_the_plain_description_is_no_file_of_the_page() -> None:
    assert "plain.md" in PRIVATE_FILES
    assert not any("plain.md" in load_project(name).files for name in list_projects())


def test_a_project_without_a_plain_description_has_one_form(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<p data-filter-by="text" data-evalby="text">Hi</p>')
    (tmp_path / "project.yaml").write_text("title: A\n")
    (tmp_path / "tasks.md").write_text("# A\n\nBlue, 20 px.")
    assert load_project(f"{tmp_path}/").plain == "# A\n\nBlue, 20 px."


@pytest.mark.parametrize("name", PROJECTS)
def test_the_blind_page_of_a_plain_description_names_what_is_clicked_and_knows_no_colour(name: str) -> None:
    page = PageWriter(random.Random(0)).choose(f"{load_project(name).plain}\n\nThe page is compared at first", ())
    colours = set(re.findall(r"#[0-9a-f]{6}", page))
    assert colours <= {"#ffffff", "#000000"}
    assert "```html" in page
