"""The page that is written from the description alone; no browser is started."""

from __future__ import annotations

import random

from vlgym_webui.blind import PageWriter
from vlgym_webui.code_parser import read_action
from vlgym_webui.project import load_project


def write(name: str) -> dict[str, str]:
    project = load_project(name)
    text = f"You are a front-end developer.\n\n{project.description}\n\nThe page is compared at first and after ..."
    return read_action(PageWriter(random.Random(0)).choose(text, ())) or {}


def test_the_accordion_has_the_questions_answers_and_colours_of_its_description() -> None:
    code = write("accordion")
    for words in ("Baking questions", 'id="q2"', "Can I freeze the loaf?", "Strong white flour, with a fifth of rye"):
        assert words in code["index.html"]
    for rule in ("#fff8f0", "width: 520px", "margin: 48px auto", "#7c2d12", "#fed7aa", "#431407", "#9a3412", "#ffedd5"):
        assert rule in code["style.css"]
    assert 'classList.toggle("open"' in code["script.js"]
