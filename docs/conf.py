"""Settings of the documentation site: `make docs-site` builds it from the pages that lie here anyway."""

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

sys.path.insert(0, str(ROOT / "docs"))

import generate  # noqa: E402

import vlgym  # noqa: E402

project = "vlgym"
author = "the vlgym authors"
release = version = vlgym.__version__
copyright = author
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.githubpages",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["results"]
root_doc = "index"
nitpicky = False
highlight_language = "text"

myst_heading_anchors = 4

html_theme = "furo"
html_title = f"vlgym {release}"
html_extra_path = [str(path) for path in [ROOT / "build" / "gallery"] if path.is_dir()]
html_theme_options = {
    "source_repository": "https://github.com/vlgym/vlgym/",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["gallery.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False

# `make links` asks whether addresses outside answer. It needs the network, so CI does not.
linkcheck_ignore = [r"https?://(127\.0\.0\.1|localhost|[\w.-]+\.example)([:/]|$)", r"https://github\.com/vlgym/vlgym"]
linkcheck_timeout = 20  # seconds
linkcheck_retries = 2
linkcheck_workers = 4
linkcheck_rate_limit_timeout = 60.0  # seconds
linkcheck_allow_unauthorized = False

SOURCE = "https://github.com/vlgym/vlgym/blob/main/"


def point_outside(app: Any, name: str, source: list[str]) -> None:
    """Let links to files that are no pages of the site point to the repository."""
    page = Path(app.srcdir) / f"{name}.md"

    def replace(match: re.Match[str]) -> str:
        target, anchor = match[2], match[3] or ""
        path = (page.parent / target).resolve()
        pages = Path(app.srcdir)
        if path.suffix in (".json", ".jsonl") and path.with_suffix(".md").exists():
            return f"{match[1]}({os.path.relpath(path.with_suffix('.md'), page.parent)})"
        family = pages / "families" / f"{path.parent.name}.md"
        if path.name == "README.md" and path.parent.parent == ROOT / "plugins" and family.exists():
            return f"{match[1]}({os.path.relpath(family, page.parent)})"
        if not path.is_relative_to(ROOT) or not path.exists():
            return match[0]  # what is not there is for Sphinx to complain of
        if (
            path.is_relative_to(pages)
            and path.is_file()
            and path.suffix in (".md", ".png", ".webp")
            and "results" not in path.parts
        ):
            return match[0]
        return f"{match[1]}({SOURCE}{path.relative_to(ROOT)}{anchor})"

    moving = r'<figure><img src="animations/\2" alt="\1" loading="lazy"><figcaption>\1</figcaption></figure>'
    source[0] = re.sub(rf'\[!\[(.+?)\]\({generate.FIRST}/(\S+) "\1"\)\]\(environments\.md\)', moving, source[0])
    source[0] = re.sub(rf"\]\({generate.FIRST}/[^)]*\)", "](gallery.md)", source[0])
    source[0] = re.sub(
        r"\]\(\.\./plugins/(\w+)/README\.md\)", lambda match: f"]({generate.find_page(match[1])})", source[0]
    )
    source[0] = re.sub(r"(\])\(((?![a-z]+:|#)[^)#\s]+)(#[^)\s]*)?\)", replace, source[0])


def read_as_markdown(app: Any, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are written as Markdown is: one backtick marks code, and a bar or a star means itself. An example
    (`>>>`) is left as it is."""
    blocks = re.split(r"(^[ ]*>>> (?:.+\n)*.*)", "\n".join(lines), flags=re.MULTILINE)
    for index in range(0, len(blocks), 2):
        parts = re.split(r"(`+[^`]+`+)", blocks[index])
        parts[::2] = [re.sub(r"(?<!\\)([|*])", r"\\\1", part) for part in parts[::2]]
        parts[1::2] = [f"``{part.strip('`')}``".replace("\n", " ") for part in parts[1::2]]
        blocks[index] = "".join(parts)
    lines[:] = "".join(blocks).split("\n")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    generate.write_site_pages(Path(app.srcdir))
    app.connect("source-read", point_outside)
    app.connect("autodoc-process-docstring", read_as_markdown, priority=400)  # before napoleon
