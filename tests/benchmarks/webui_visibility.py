"""WebUI: what pages score that are not to be seen, and pages that are honest but imperfect, in both forms of the score.

    python tests/benchmarks/webui_visibility.py --write

Each shipped project's own code is changed in the same ways, rendered once, and scored by the published algorithm
(`compat="magebench"`) and by the default.
"""

from __future__ import annotations

import argparse
import re
import statistics

from report import finish, parse_write, table
from vlgym_webui.aes import score_pages
from vlgym_webui.browser import POOL, Browser
from vlgym_webui.photographs import Photographs
from vlgym_webui.project import Project, list_projects, load_project
from vlgym_webui.studio import STUDIO

from vlgym.chromium import Limits

Code = dict[str, str]


def with_css(code: Code, css: str) -> Code:
    """Return the code with rules added at the end of the style sheet."""
    return {**code, "style.css": code["style.css"] + "\n" + css}


def cover(code: Code) -> Code:
    """The right code under a white sheet that lets clicks through."""
    css = "html::after { content: ''; position: fixed; inset: 0; background: #fff; z-index: 2147483647; "
    return with_css(code, css + "pointer-events: none }")


def fade(code: Code) -> Code:
    """The right code, transparent by a filter."""
    return with_css(code, "html { filter: opacity(0) }")


def scatter(code: Code) -> Code:
    """120 boxes that nobody sees, in a grid over the window, and nothing else."""
    boxes = "".join(
        f"<div style='position:absolute;left:{x * 80}px;top:{y * 50}px;width:78px;height:48px'></div>"
        for y in range(12) for x in range(10)
    )  # fmt: skip
    return {"index.html": f"<!DOCTYPE html><html><body style='margin:0'>{boxes}</body></html>"}


def stretch(code: Code) -> Code:
    """The right code with every element as large as the window."""
    css = (
        "body * { position: fixed !important; inset: 0 !important; width: 100vw !important; height: 100vh !important }"
    )
    return with_css(code, css)


def shift(code: Code) -> Code:
    """The right code, 12 pixels to the right and 9 down."""
    return with_css(code, "html { position: relative; left: 12px; top: 9px }")


def recolour(code: Code) -> Code:
    """The right code with every colour's red, green and blue in another order."""
    return {**code, "style.css": re.sub(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", r"#\3\1\2", code["style.css"])}


def enlarge(code: Code) -> Code:
    """The right code with letters an eighth larger."""
    return with_css(code, "html { font-size: 18px } * { zoom: 1 } body { zoom: 1.06 }")


def undress(code: Code) -> Code:
    """The page without its style sheet."""
    return {**code, "style.css": ""}


WAYS = {
    "the project's own code": (dict, False),
    "under a white sheet": (cover, True),
    "transparent by `html{filter:opacity(0)}`": (fade, True),
    "120 boxes that nobody sees": (scatter, True),
    "everything stretched to the window": (stretch, True),
    "12 pixels to the right, 9 down": (shift, False),
    "other colours": (recolour, False),
    "6 percent larger": (enlarge, False),
    "without the style sheet": (undress, False),
}


def score(project: Project, code: Code) -> tuple[float, float]:
    """Return the published score and the default one of the same render."""
    target = STUDIO.target(project)
    files = {**project.assets, **{name: text.encode() for name, text in code.items()}}
    render = STUDIO._render(project, files)
    if render.failure:
        raise SystemExit(f"{project.name}: {render.failure}")
    tables = [one for one in target.tables if one is not None]
    agree = Photographs(target, render).agree
    return (
        score_pages(tables, render.tables, compat=True).score,
        score_pages(tables, render.tables, agree=agree).score,
    )


def write_page(seen: dict[str, list[tuple[float, float]]], write: bool) -> None:
    """Print the table, and write the page if asked to."""
    rows = []
    for way, pairs in seen.items():
        cells = [way]
        for form in zip(*pairs, strict=True):
            cells += [f"{statistics.median(form):.1f}", f"{min(form):.1f}", f"{max(form):.1f}"]
        rows.append(cells)
    count = len(next(iter(seen.values())))
    body = (
        f"{count} of the {len(list_projects())} shipped projects; score in percent. The default multiplies an "
        "element's score by how far it is to be "
        "seen in the photograph as its target is (`vlgym_webui.photographs`).\n\n"
    )
    header = ["page", "published: median", "least", "most", "default: median", "least", "most"]
    finish("webui_visibility", "WebUI: pages that are not to be seen", body + table(header, rows),
           ["vlgym", "vlgym-webui", "selenium"], write)  # fmt: skip


def main() -> None:
    """Score all and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=30)
    chosen = parse_write(__doc__ or "", parser)
    POOL.make = lambda: Browser(Limits(wall_s=100, cpu_s=100))
    names = list_projects()[: chosen.projects]
    seen: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for name in names:
        project = load_project(name)
        for way, (change, _) in WAYS.items():
            seen[way].append(score(project, change(project.code())))
        print(name, *(f"{pairs[-1][0]:.1f}/{pairs[-1][1]:.1f}" for pairs in seen.values()), flush=True)
        if len(seen["other colours"]) % 5 == 0:  # a long run that is broken off leaves what it has
            write_page(seen, chosen.write)
    POOL.close()
    write_page(seen, chosen.write)
    failed = [way for way, (_, trick) in WAYS.items() if trick and max(pair[1] for pair in seen[way]) >= 5]
    if failed or min(pair[1] for pair in seen["the project's own code"]) < 99.9:
        raise SystemExit(f"not as it should be: {failed}")


if __name__ == "__main__":
    main()
