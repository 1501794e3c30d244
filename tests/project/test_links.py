"""Every link of the documentation leads to a file and a heading (`make links`: outside)."""

import re
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from sources import ROOT

PLACES = ("*.md", "llms.txt", "docs/**/*.md", "hub/**/*.md", "plugins/*/README.md", "vlgym/**/*.md")
PAGES = sorted({path for place in PLACES for path in ROOT.glob(place)})
READER = MarkdownIt("commonmark").enable("table")


@cache
def read_page(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets of a page's links and pictures, and the anchors of its headings."""
    targets: list[str] = []
    anchors: list[str] = []
    tokens = READER.parse(path.read_text(encoding="utf-8"))
    for number, token in enumerate(tokens):
        for child in token.children or []:
            targets += [str(child.attrs[name]) for name in ("href", "src") if name in child.attrs]
        if token.type in ("html_block", "inline"):
            targets += re.findall(r"""<(?:a|img)\s[^>]*?(?:href|src)=["']([^"']+)""", token.content)
        if token.type == "heading_open":
            words = "".join(child.content for child in tokens[number + 1].children or [])
            name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            again = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", anchor) is not None for anchor in anchors)
            anchors.append(f"{name}-{again}" if again else name)
    return tuple(targets), tuple(anchors)


def find_fault(page: Path, target: str) -> str:
    """Return the fault of a link to a file or a heading; empty where nothing is wrong."""
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists() or not path.is_relative_to(ROOT):
        return "no such file"
    if anchor and (path.suffix != ".md" or anchor not in read_page(path)[1]):
        return "no such heading"
    return ""


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    links = [(page, target) for page in PAGES for target in read_page(page)[0]]
    inner = [link for link in links if not re.match(r"[a-z]+:", link[1])]
    assert [(str(page), target, fault) for page, target in inner if (fault := find_fault(page, target))] == []
    assert len(inner) > 50
