"""Renders and scores code for a project, remembering what was rendered before: same code, same result, no browser.

The only caller of the pool. Targets are rendered by the same browser as the pages that are compared with them, so
that fonts and versions cancel out.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from vlgym.browser.chromium import ATTEMPTS, BrowserPool

from .aes import Report, lose_all, score_pages
from .browser import POOL, Browser, Render
from .photographs import Photographs
from .project import Project
from .steps import ProjectError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Evaluation:
    """What became of some code.

    Attributes:
        report: AES and losses.
        failure: `None`, or why the page was not rendered to the end.
        problems: why interactions failed, by their number from 0.
        blocked: what the page tried and was refused, counted.
        pictures: PNG files of the initial page and after each interaction; `None` where there is none.
    """

    report: Report
    failure: str | None
    problems: dict[int, str]
    blocked: dict[str, int]
    pictures: tuple[bytes | None, ...]


class Studio:
    """Scores code, with two bounded memories (targets and evaluations)."""

    def __init__(self, pool: BrowserPool[Browser] = POOL) -> None:
        self.pool = pool
        self._targets: _Memory[Render] = _Memory(64)
        self._evaluations: _Memory[Evaluation] = _Memory(256)

    def evaluate(self, project: Project, code: Mapping[str, str], *, compat: bool = False) -> Evaluation:
        """Render `code` with the project's assets, do the interactions, and score the result against the target.

        Args:
            project: the target.
            code: file name -> code as text.
            compat: the published scoring instead of the corrected one.

        Raises:
            ProjectError: the target itself fails.
            MissingSystemPartError: there is no browser.
        """
        files = {**project.assets, **{name: text.encode("utf-8", "replace") for name, text in code.items()}}
        key = (_fingerprint(project), _digest(files), compat)
        known = self._evaluations.get(key)
        if known is None:
            known, lost = self._evaluate(project, files, compat)
            if not lost:  # what three browsers in a row did not survive is tried again when it is asked for again
                self._evaluations.put(key, known)
        return known

    def target(self, project: Project) -> Render:
        """Return the target's render, pictures included.

        Raises:
            ProjectError: it fails, so nothing can be compared with it.
        """
        key = (_fingerprint(project),)
        known = self._targets.get(key)
        if known is None:
            render = self._render(project, project.files, annotated=True)
            if render.failure is not None:
                raise ProjectError(
                    f"{project.name}/index.html, line 1: the ground truth itself cannot be rendered "
                    f"({render.failure}); fix its code."
                )
            known = self._targets.put(key, render)
        for number, problem in known.problems.items():
            raise ProjectError(
                f"{project.name}/project.yaml: interaction {number + 1} ({project.interactions[number].name!r}) "
                f"fails on the "
                f"ground truth: {problem}; fix its selector or steps."
            )
        return known

    def _evaluate(self, project: Project, files: Mapping[str, bytes], compat: bool) -> tuple[Evaluation, bool]:
        """Return what became of the files, and whether the browsers were lost over them."""
        target = self.target(project)
        tables = [table for table in target.tables if table is not None]
        if "index.html" not in files:
            return Evaluation(lose_all("Ren", len(tables)), "no_html", {}, {}, (None,) * len(tables)), False
        render = self._render(project, files)
        report = score_pages(
            tables,
            render.tables if render.rendered else None,
            compat=compat,
            agree=None if compat else Photographs(target, render).agree,
        )
        return Evaluation(report, render.failure, render.problems, render.blocked, render.pictures), render.lost

    def _render(self, project: Project, files: Mapping[str, bytes], *, annotated: bool = False) -> Render:
        """Render a page, with another browser where one is lost; what no browser survives is the page's own fault."""
        for _ in range(ATTEMPTS):
            with self.pool.borrow() as browser:
                render = browser.render(files, project.interactions, project.viewport, annotated=annotated)
            if not render.lost:
                break
        return render


class _Memory(Generic[Item]):
    """The last so many items, by key."""

    def __init__(self, most: int) -> None:
        self._items: OrderedDict[tuple[Any, ...], Item] = OrderedDict()
        self._most = most

    def get(self, key: tuple[Any, ...]) -> Item | None:
        return self._items.get(key)

    def put(self, key: tuple[Any, ...], item: Item) -> Item:
        self._items[key] = item
        while len(self._items) > self._most:
            self._items.popitem(last=False)
        return item


def _fingerprint(project: Project) -> str:
    steps = json.dumps([project.viewport, repr(project.interactions)])
    return _digest(project.files) + hashlib.sha256(steps.encode()).hexdigest()[:16]


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()[:32]


STUDIO = Studio()
"""The studio of this process."""
