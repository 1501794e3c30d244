"""Renders and scores code for a project, and remembers it: same code, same result, no browser.

Targets are rendered by the same browser as their pages, so that fonts and versions cancel out.
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

        Raises:
            ProjectError: the target itself fails.
            MissingSystemPartError: there is no browser.
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
    """Keep an item among the last `most` ones."""
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
