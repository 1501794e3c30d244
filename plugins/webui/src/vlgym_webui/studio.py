"""Renders and scores code for a project, and remembers it: same code, same result, no browser.

Targets are rendered by the same browser as their pages, so that fonts and versions cancel out.

An element counts as far as it is seen: photographs of target and page are compared where it is.

    agreement = 2 |covariance| / (variance of the one + variance of the other)

over the colours in a grid of cells on the element's box and a margin. This is the contrast and
structure term of the structural similarity index (Wang et al., 2004): 1 for the same picture, 0 for
none or another, near 0 for a faint one. Colours and places change little.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from vlgym.browser.chromium import ATTEMPTS, BrowserPool
from vlgym.env.rendering import decode_png

from .aes import Box, Report, lose_all, score_pages
from .browser import POOL, Browser, Render
from .project import Project, ProjectError

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Evaluation:
    """AES of some code with its losses, and the render."""

    report: Report
    render: Render


class Studio:
    """Scores code, with two bounded memories (targets and evaluations)."""

    def __init__(self, pool: BrowserPool[Browser] = POOL) -> None:
        self.pool = pool
        self._targets: dict[str, Render] = {}
        self._evaluations: dict[tuple[str, str, bool], Evaluation] = {}

    def evaluate(self, project: Project, code: Mapping[str, str], *, compat: bool = False) -> Evaluation:
        """Score the page of `code` (by file name); `compat` is the published scoring.

        A `ProjectError` says that the target fails, a `MissingSystemPartError` names the browser.
        """
        files = project.assets | {name: text.encode("utf-8", "replace") for name, text in code.items()}
        key = (_fingerprint(project), _digest(files), compat)
        known = self._evaluations.get(key)
        if known is None:
            known = self._evaluate(project, files, compat)
            if not known.render.lost:  # where three browsers were lost, the next call tries again
                _remember(self._evaluations, key, known, 256)
        return known

    def target(self, project: Project) -> Render:
        """Return the target's render, or raise a `ProjectError` where it fails."""
        key = _fingerprint(project)
        if key not in self._targets:
            render = self._render(project, project.files, annotated=True)
            if render.failure is not None:
                raise ProjectError(
                    f"{project.name}/index.html, line 1: the ground truth itself cannot be rendered "
                    f"({render.failure}); fix its code."
                )
            _remember(self._targets, key, render, 64)

        # A target that cannot do its own interactions is refused at every look.
        for number, problem in self._targets[key].problems.items():
            name = project.interactions[number].name
            raise ProjectError(
                f"{project.name}/project.yaml: interaction {number + 1} ({name!r}) "
                f"fails on the ground truth: {problem}; fix its selector or steps."
            )
        return self._targets[key]

    def _evaluate(self, project: Project, files: Mapping[str, bytes], compat: bool) -> Evaluation:
        target = self.target(project)
        tables = [table for table in target.tables if table is not None]
        if "index.html" not in files:
            nothing = (None,) * len(tables)
            return Evaluation(lose_all("Ren", len(tables)), Render(nothing, nothing, "no_html"))
        render = self._render(project, files)
        agree = None if compat else Photographs(target, render).agree
        return Evaluation(score_pages(tables, render.tables, compat=compat, agree=agree), render)

    def _render(self, project: Project, files: Mapping[str, bytes], *, annotated: bool = False) -> Render:
        """Render a page; where the browser is lost, another one tries, and the last loss counts."""
        for _ in range(ATTEMPTS):
            with self.pool.borrow() as browser:
                render = browser.render(files, project.interactions, project.viewport, annotated=annotated)
            if not render.lost:
                break
        return render


def _remember(memory: dict[Key, Item], key: Key, item: Item, most: int) -> None:
    memory[key] = item
    if len(memory) > most:
        del memory[next(iter(memory))]


def _fingerprint(project: Project) -> str:
    steps = json.dumps([project.viewport, repr(project.interactions)])
    return _digest(project.files) + hashlib.sha256(steps.encode()).hexdigest()[:16]


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()[:32]


STUDIO = Studio()  # of this process


# Agreements up to which, and from which on, an element is not seen, and is seen.
NOTHING, ALL = 0.3, 0.6
MARGIN = 8.0  # pixels around an element, against which most boxes show
_CELL, _MOST_CELLS = 4.0, 48
_FLAT = 0.5  # variance of colours (levels of 0 to 255) below which a target shows nothing


class Photographs:
    """The photographs of two renders, moment by moment."""

    def __init__(self, target: Render, own: Render) -> None:
        self._views, self._own_views = target.views, own.views
        self._tables = [*zip(*(map(_sum_areas, each.pictures) for each in (target, own)), strict=True)]

    def agree(self, moment: int, target: Box, box: Box) -> float:
        """Return how far an element is to be seen as its target is, from 0 to 1.

        Boxes are in pixels of the document. Where the target itself shows nothing (outside the
        window, or the same colour as all around it), the whole photographs are compared.
        """
        first, second = self._tables[moment]
        if first is None or second is None:
            return 0.0
        area = self._visible(target, moment, first)
        if area is None:
            return _agree_whole(first, second)

        # The same part of the other element, in its own size and place.
        x, y, width, height = area
        wide, high = max(box[2], 1.0) / max(target[2], 1.0), max(box[3], 1.0) / max(target[3], 1.0)
        left, top = self._views[moment]
        own_left, own_top = self._own_views[moment]
        partner = (
            box[0] - own_left + (x - target[0] + left) * wide, box[1] - own_top + (y - target[1] + top) * high,
            width * wide, height * high,
        )  # fmt: skip

        # The share of the target's colours that the other element has, too.
        wanted = _read_cells(first, area, _count_cells(width, height))
        if wanted.var(axis=(0, 1)).sum() < _FLAT:
            return _agree_whole(first, second)
        return _share(wanted, _read_cells(second, partner, _count_cells(width, height)))

    def _visible(self, box: Box, moment: int, table: np.ndarray) -> Box | None:
        """Return the part of a target's box, with its margin, that is in the photograph."""
        left, top = self._views[moment]
        height, width = table.shape[0] - 1, table.shape[1] - 1
        x, y = box[0] - left, box[1] - top
        if x >= width or y >= height or x + box[2] <= 0 or y + box[3] <= 0:
            return None
        begin_x, begin_y = max(0.0, x - MARGIN), max(0.0, y - MARGIN)
        end_x, end_y = min(width, x + box[2] + MARGIN), min(height, y + box[3] + MARGIN)
        return begin_x, begin_y, end_x - begin_x, end_y - begin_y


def _sum_areas(png: bytes | None) -> np.ndarray | None:
    """Return a photograph's summed-area table, `[H + 1, W + 1, 3] float64`, if any."""
    if png is None:
        return None
    sums = decode_png(png).astype(np.float64).cumsum(axis=0).cumsum(axis=1)
    return np.pad(sums, ((1, 0), (1, 0), (0, 0)))


def _agree_whole(first: np.ndarray, second: np.ndarray) -> float:
    box = (0.0, 0.0, first.shape[1] - 1.0, first.shape[0] - 1.0)
    cells = _count_cells(box[2], box[3])
    return _share(_read_cells(first, box, cells), _read_cells(second, box, cells))


def _count_cells(width: float, height: float) -> tuple[int, int]:
    rows, columns = (max(2, min(_MOST_CELLS, round(side / _CELL))) for side in (height, width))
    return rows, columns


def _read_cells(table: np.ndarray, box: Box, cells: tuple[int, int]) -> np.ndarray:
    """Return the mean colour of each cell `[rows, columns, 3] float64`; outside, the edge's."""
    rows = np.linspace(box[1], box[1] + box[3], cells[0] + 1)
    columns = np.linspace(box[0], box[0] + box[2], cells[1] + 1)
    top, bottom = _bounds(rows, table.shape[0] - 1)
    left, right = _bounds(columns, table.shape[1] - 1)
    sums = table[np.ix_(bottom, right)] - table[np.ix_(top, right)] - table[np.ix_(bottom, left)]
    sums += table[np.ix_(top, left)]
    return sums / ((bottom - top)[:, None, None] * (right - left)[None, :, None])


def _bounds(edges: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whole first and last pixels of cells, at least one pixel each."""
    begin = np.clip(np.floor(edges[:-1] + 0.5).astype(np.int64), 0, most - 1)
    end = np.clip(np.floor(edges[1:] + 0.5).astype(np.int64), 1, most)
    return begin, np.maximum(end, begin + 1)


def _share(wanted: np.ndarray, candidate: np.ndarray) -> float:
    first, second = wanted - wanted.mean(axis=(0, 1)), candidate - candidate.mean(axis=(0, 1))
    total = float((first**2).sum() + (second**2).sum())
    agreement = 2 * abs(float((first * second).sum())) / total if total > 0 else 1.0
    return min(1.0, max(0.0, (agreement - NOTHING) / (ALL - NOTHING)))
