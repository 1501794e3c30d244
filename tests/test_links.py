"""Every link of the documentation leads somewhere: to a file and a heading that exist, or to a well-formed address.
Whether an address answers is not asked here (`make links` asks it)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from markdown_it import MarkdownIt
from sources import ROOT

from vlgym.registry_file import read_registry

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md"), *ROOT.glob("vlgym/**/*.md")]
)
READER = MarkdownIt("commonmark").enable("table")
OUTSIDE = re.compile(r"https?://[^\s<>\"'`)\]},;]+")
PAPER = re.compile(r"\barxiv(?:\.org/\w+/|\.|:|\s)\s*([\w-]*\d[\w./-]*)", re.IGNORECASE)
DOI = re.compile(r"\bdoi(?:\.org/|:\s*|\s+(?=\d))(\S+)", re.IGNORECASE)
HERE = ("127.0.0.1", "localhost")


@cache
def read_page(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets of a page's links and pictures, and the anchors of its headings, as GitHub and the site name them."""
    targets: list[str] = []
    anchors: list[str] = []
    tokens = READER.parse(path.read_text(encoding="utf-8"))
    for number, token in enumerate(tokens):
        for child in token.children or []:
            targets += [str(child.attrs[name]) for name in ("href", "src") if name in child.attrs]
        if token.type == "heading_open":
            words = "".join(child.content for child in tokens[number + 1].children or [])
            name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            again = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", anchor) is not None for anchor in anchors)
            anchors.append(f"{name}-{again}" if again else name)
    return tuple(targets), tuple(anchors)


def find_fault(page: Path, target: str) -> str:
    """What is wrong with a link to a file or a heading; empty where nothing is."""
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists():
        return "no such file"
    if not path.is_relative_to(ROOT):
        return "outside the repository"
    if anchor and (path.suffix != ".md" or anchor not in read_page(path)[1]):
        return "no such heading"
    return ""


def find_wrong_address(address: str) -> str:
    """What is wrong with an address outside; empty where nothing is."""
    parts = urlsplit(address.rstrip(".:"))
    host = parts.hostname or ""
    if host in HERE or host.endswith(".example"):
        return ""
    if parts.scheme != "https":
        return "not https"
    if not re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", host):
        return "no host"
    return "a name or password" if parts.username else ""


def find_wrong_papers(text: str) -> list[str]:
    """Numbers of arXiv and DOIs that cannot be one: arXiv's are year, month and five digits (four before 2015)."""
    wrong = []
    for match in PAPER.finditer(text):
        number = match[1].rstrip(".")
        form = re.fullmatch(r"(\d\d)(0[1-9]|1[0-2])\.(\d{4,5})(v\d+)?", number)
        if form is None or len(form[3]) != (5 if int(form[1]) >= 15 else 4):
            wrong.append(f"arXiv {number}")
    return wrong + [
        match[0] for match in DOI.finditer(text) if not re.fullmatch(r"10\.\d{4,9}/\S+", match[1].rstrip(".,;)"))
    ]


def texts() -> dict[str, str]:
    """What may name an address or a paper, by where it stands."""
    files = [*PAGES, ROOT / "CITATION.cff", *ROOT.glob("pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    found = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    cards = {env_id: "\n".join(entry["spec"].references) for env_id, entry in read_registry().items()}
    return found | cards


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    found, broken = 0, []
    for page in PAGES:
        for target in read_page(page)[0]:
            if not re.match(r"[a-z]+:", target):
                found += 1
                if fault := find_fault(page, target):
                    broken.append(f"{page.relative_to(ROOT)}: {target}: {fault}")
    assert broken == []
    assert found > 300


def test_every_address_outside_is_well_formed() -> None:
    found = {(where, address) for where, text in texts().items() for address in OUTSIDE.findall(text)}
    wrong = {(where, address): find_wrong_address(address) for where, address in found}
    assert {place: fault for place, fault in wrong.items() if fault} == {}
    assert len({address for _, address in found}) > 5


def test_every_number_of_a_paper_has_the_right_form() -> None:
    wrong = {where: bad for where, text in texts().items() if (bad := find_wrong_papers(text))}
    assert wrong == {}
    assert sum(len(PAPER.findall(text)) for text in texts().values()) > 40


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("docs/index.md", ""),
        ("docs/quickstrat.md", "no such file"),
        ("docs/learner.md#models", ""),
        ("docs/learner.md#modles", "no such heading"),
        ("#two-commands", ""),
        ("#three-commands", "no such heading"),
        ("Makefile#help", "no such heading"),
        ("../", "outside the repository"),
    ],
)
def test_a_link_that_leads_nowhere_is_noticed(target: str, fault: str) -> None:
    assert find_fault(ROOT / "README.md", target) == fault


def test_links_in_code_are_none_and_equal_headings_have_numbers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A *b*: `c_d`\n\n[x](one.md) `[y](two.md)` ![z](three.png)\n\n```\n[w](four.md)\n```\n\n## A b c_d\n"
    )
    assert read_page(page) == (("one.md", "three.png"), ("a-b-c_d", "a-b-c_d-1"))


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("https://arxiv.org/abs/2306.13831", ""),
        ("http://127.0.0.1:8000/v1", ""),
        ("http://arxiv.org/abs/2306.13831", "not https"),
        ("https://arxiv", "no host"),
        ("https:///abs/2306.13831", "no host"),
        ("https://me:word@arxiv.org/", "a name or password"),
    ],
)
def test_a_wrong_address_is_noticed(address: str, fault: str) -> None:
    assert find_wrong_address(address) == fault


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("VL-DAC (arXiv 2508.04280), arXiv:2306.13831v2, https://arxiv.org/abs/1412.6980.", []),
        ("arXiv 2513.04280", ["arXiv 2513.04280"]),
        ("arXiv 2508.0428", ["arXiv 2508.0428"]),
        ("arXiv 1312.5602, arXiv 25080428.", ["arXiv 25080428"]),
        ("doi:10.2307/2334029, https://doi.org/2334029", ["doi.org/2334029"]),
    ],
)
def test_a_wrong_number_of_a_paper_is_noticed(text: str, wrong: list[str]) -> None:
    assert find_wrong_papers(text) == wrong


WANTED = {
    "install": "make demo",
    "evaluate my model": "vlgym eval --policy openai:",
    "train": "python -m baselines.vldac --env",
    "add an environment": "vlgym new-plugin ",
}
"""What a first-time reader is after, and the beginning of the command that the page in question shows."""


def count_clicks(start: Path) -> dict[Path, int]:
    """How many links lead from a page to each other one, at least."""
    clicks, waiting = {start: 0}, [start]
    while waiting:
        page = waiting.pop(0)
        for target in read_page(page)[0]:
            path = (page.parent / target.partition("#")[0]).resolve()
            if path.suffix == ".md" and path.is_file() and path not in clicks:
                clicks[path] = clicks[page] + 1
                waiting.append(path)
    return clicks


@pytest.mark.parametrize("start", ["README.md", "docs/index.md"])
@pytest.mark.parametrize("wish", WANTED)
def test_a_first_time_reader_finds_the_command_in_two_clicks(start: str, wish: str) -> None:
    pages = [path for path, clicks in count_clicks(ROOT / start).items() if clicks <= 2]
    shown = [path for path in pages if re.search(rf"^{re.escape(WANTED[wish])}", path.read_text("utf-8"), re.MULTILINE)]
    assert shown
