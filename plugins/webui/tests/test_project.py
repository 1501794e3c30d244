"""Project folders: shipped ones are complete and leave their looks to the pictures; mistakes are named."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from vlgym_webui.blind import PageWriter
from vlgym_webui.code_parser import read_action, write_action
from vlgym_webui.plugin import PROJECTS, vlgym_suites
from vlgym_webui.project import Interaction, Project, ProjectError, Step, list_projects, load_project
from vlgym_webui.shoot import main

from vlgym.env.spaces import CHARSET, MAX_REPLY
from vlgym.registry.making import make

PAGE = (
    "<!DOCTYPE html>\n<html>\n<body>\n"
    '<p class="a" data-filter-by="text" data-evalby="text|color">Hi</p>\n'
    "</body>\n</html>\n"
)
CARD = """title: A test
split: val
viewport: [640, 480]
interactions:
  - name: use it
    steps:
      - click: ".a"
      - hover: "#b"
      - type: {into: ".c", text: "x y"}
      - wait: 500
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "_images").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "project.yaml").write_text(CARD)
    (folder / "tasks.md").write_text("# Mine\n\n![page](_images/0.png)\n\nA page.\n")
    Image.new("RGB", (64, 48)).save(folder / "_images" / "0.png")
    return folder


@pytest.fixture
def problem(folder: Path) -> Callable[..., str]:
    """Write a file of the folder again and return the message of the error that loading gives."""

    def load(name: str, text: str) -> str:
        (folder / name).write_text(text)
        with pytest.raises(ProjectError) as caught:
            load_project(f"{folder}/")
        return str(caught.value)

    return load


def test_every_project_is_complete_and_in_one_split_and_the_suites_hold_them() -> None:
    names = list_projects()
    assert [len(list_projects(split)) for split in ("train", "val", "test")] == [20, 4, 6]
    for project in map(load_project, names):
        code = project.code()
        assert len(project.pictures) == 1 + len(project.interactions) >= 2, project.name
        assert set(project.description) <= set(CHARSET), project.name
        assert len(write_action(code)) < MAX_REPLY / 2, project.name
        assert "data-" not in code["index.html"].replace("data-count", ""), project.name
        assert all(interaction.name in project.description for interaction in project.interactions), project.name
    whole, mini = ([item["project"] for item in part.items] for part in vlgym_suites())
    assert sorted(whole) == list(names)
    assert mini == sorted(whole)[:20]
    assert [part.repeats for part in vlgym_suites()] == [3, 3]


def test_a_folder_of_ones_own_loads(folder: Path) -> None:
    (folder / "img").mkdir()
    (folder / "img" / "a.svg").write_text("<svg/>")
    project = load_project(f"{folder}/")
    steps = (Step("click", ".a"), Step("hover", "#b"), Step("type", ".c", "x y"), Step("wait", wait_ms=500))
    words, picture = "# Mine\n\nA page.", folder / "_images" / "0.png"
    files = {"index.html": PAGE.encode(), "img/a.svg": b"<svg/>"}
    interactions = (Interaction("use it", steps),)
    assert project == Project(
        "mine", "A test", "val", (640, 480), interactions, words, words, (picture.resolve(),), files
    )
    assert project.assets == {"img/a.svg": b"<svg/>"}
    assert project.code()["index.html"] == PAGE.replace(' data-filter-by="text" data-evalby="text|color"', "")


def test_python_actions_are_refused_with_an_explanation_and_never_run(folder: Path) -> None:
    (folder / "project.yaml").unlink()
    (folder / "actions.py").write_text(f"open({str(folder / 'run')!r}, 'w')\nactions = []\n")
    with pytest.raises(ProjectError, match=r"actions\.py: .*never run.*project\.yaml.*interactions.*click, hover"):
        load_project(f"{folder}/")
    (folder / "project.yaml").write_text(CARD)
    assert "actions.py" not in load_project(f"{folder}/").files
    assert not (folder / "run").exists()


STEPS = "title: a\ninteractions:\n  - name: b\n    steps:\n      - "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("split: train\n", "lacks 'title'"),
        ("title: a\nsplt: train\n", "key='splt' is not one of.*Nearest: split"),
        ("title: a\nsplit: trian\n", "split='trian'.*Nearest: train"),
        ("title: a\nviewport: [800, ten]\n", "viewport height is 'ten'; write a whole number from 200"),
        (f"title: a\ninteractions: {[1] * 9}\n", "write a list of 0 to 8 items"),
        ("title: a\ninteractions:\n  - name: b\n", "interaction 1 lacks 'steps'"),
        (f"{STEPS}clik: .a\n", "interaction 1, step 1: key='clik'.*Nearest: click"),
        (f"{STEPS}click: '[a'\n", "no CSS selector"),
        (f"{STEPS}wait: soon\n", "whole number from 1 to 20000"),
        (f"{STEPS}{{click: .a, wait: 5}}\n", "2 kinds"),
        ("title: [a\n", "not valid YAML.*line 2"),
        ("", "found None; write 'key: value' pairs"),
        ("title: !!python/object/apply:os.system ['true']\n", "not valid YAML"),
    ],
)
def test_a_mistake_in_the_card_is_named(problem: Callable[..., str], text: str, words: str) -> None:
    message = problem("project.yaml", text)
    assert re.search(rf"project\.yaml.*{words}", message, re.DOTALL), message


def test_a_mistake_in_an_annotation_is_named_with_line_and_fix(problem: Callable[..., str]) -> None:
    message = problem("index.html", PAGE.replace('data-filter-by="text"', 'data-filter-by="txt"'))
    assert re.search(r"index\.html, line 4:.*data-filter-by='txt'.*Nearest: .*text", message)
    assert "data-evalby is missing" in problem("index.html", PAGE.replace(' data-evalby="text|color"', ""))
    assert "no element is annotated" in problem("index.html", "<p>Hi</p>")


def test_a_picture_outside_the_folder_is_refused(problem: Callable[..., str]) -> None:
    assert "not in the folder" in problem("tasks.md", "![page](../../etc/passwd)\n")


@pytest.mark.parametrize("name", ["notes.txt", "plain.md"])
def test_a_link_is_refused_wherever_its_file_would_be_shown(folder: Path, name: str) -> None:
    (folder / name).symlink_to(__file__)
    with pytest.raises(ProjectError, match=rf"{name}: a link"):
        load_project(f"{folder}/")


def test_the_script_makes_pictures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "_images" / "0.png").unlink()
    (folder / "project.yaml").write_text(f"viewport: [320, 240]\n{STEPS}hover: .a\n")
    assert main([f"{folder}/"]) == 0
    assert "mine/_images/1.png" in capsys.readouterr().out
    with Image.open(folder / "_images" / "1.png") as picture:
        assert picture.size == (320, 240)
    assert len(load_project(f"{folder}/").pictures) == 1


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


def write(name: str) -> dict[str, str]:
    project = load_project(name)
    text = f"You are a front-end developer.\n\n{project.description}\n\nThe page is compared at first and after ..."
    return read_action(PageWriter(random.Random(0)).choose(text, ())) or {}


def test_the_blind_page_holds_no_words_of_later_pictures() -> None:
    assert "2700 kelvin" not in write("tabs")["index.html"]


def test_the_accordion_has_the_questions_answers_and_colours_of_its_description() -> None:
    code = write("accordion")
    for words in ("Baking questions", 'id="q2"', "Can I freeze the loaf?", "Strong white flour, with a fifth of rye"):
        assert words in code["index.html"]
    for rule in ("#fff8f0", "width: 520px", "margin: 48px auto", "#7c2d12", "#fed7aa", "#431407", "#9a3412", "#ffedd5"):
        assert rule in code["style.css"]
    assert 'classList.toggle("open"' in code["script.js"]
