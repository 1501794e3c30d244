"""Renders and scores code for a project, remembering what was rendered before: same code, same result, no browser.

The only caller of the pool. Targets are rendered by the same browser as the pages that are compared with them, so
that fonts and versions cancel out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from vlgym.browser.chromium import ATTEMPTS, BrowserPool

from .aes import Report, lose_all, score_pages
from .browser import POOL, Browser, Render
from .photographs import Photographs
from .project import Project
from .steps import ProjectError

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Evaluation:
    """Result of evaluating some code: AES with its losses, and the render that they are of."""

    report: Report
    render: Render


class Studio:
    """Scores code, with two bounded memories (targets and evaluations)."""

    def __init__(self, pool: BrowserPool[Browser] = POOL) -> None:
        self.pool = pool
        self._targets: dict[str, Render] = {}
        self._evaluations: dict[tuple[str, str, bool], Evaluation] = {}

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
            known = self._evaluate(project, files, compat)
            if not known.render.lost:  # what three browsers did not survive is tried again when it is asked for again
                _remember(self._evaluations, key, known, 256)
        return known

    def target(self, project: Project) -> Render:
        """Return the target's render, pictures included.

        Raises:
            ProjectError: it fails, so nothing can be compared with it.
        """
        key = _fingerprint(project)
        known = self._targets.get(key)
        if known is None:
            render = self._render(project, project.files, annotated=True)
            if render.failure is not None:
                raise ProjectError(
                    f"{project.name}/index.html, line 1: the ground truth itself cannot be rendered "
                    f"({render.failure}); fix its code."
                )
            known = _remember(self._targets, key, render, 64)
        for number, problem in known.problems.items():
            raise ProjectError(
                f"{project.name}/project.yaml: interaction {number + 1} ({project.interactions[number].name!r}) "
                f"fails on the ground truth: {problem}; fix its selector or steps."
            )
        return known

    def _evaluate(self, project: Project, files: Mapping[str, bytes], compat: bool) -> Evaluation:
        target = self.target(project)
        tables = [table for table in target.tables if table is not None]
        if "index.html" not in files:
            nothing = (None,) * len(tables)
            return Evaluation(lose_all("Ren", len(tables)), Render(nothing, nothing, "no_html"))
        render = self._render(project, files)
        report = score_pages(
            tables,
            render.tables if render.rendered else None,
            compat=compat,
            agree=None if compat else Photographs(target, render).agree,
        )
        return Evaluation(report, render)

    def _render(self, project: Project, files: Mapping[str, bytes], *, annotated: bool = False) -> Render:
        """Render a page, with another browser where one is lost; what no browser survives is the page's own fault."""
        for _ in range(ATTEMPTS):
            with self.pool.borrow() as browser:
                render = browser.render(files, project.interactions, project.viewport, annotated=annotated)
            if not render.lost:
                break
        return render


def _remember(memory: dict[Key, Item], key: Key, item: Item, most: int) -> Item:
    """Keep an item among the last `most` ones; return it."""
    memory[key] = item
    if len(memory) > most:
        del memory[next(iter(memory))]
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
