"""A lost browser is not the page's fault: another renders the page again."""

import os
import signal
import threading

import psutil
import pytest
from vlgym_webui.browser import Browser
from vlgym_webui.project import load_project
from vlgym_webui.studio import Evaluation, Studio

from vlgym.browser.chromium import BrowserPool

PROJECT = load_project("tabs")
_TARGETS = Studio()._targets


@pytest.fixture
def studio(pool: BrowserPool[Browser]) -> Studio:
    """A studio that remembers nothing but the target, with one warm browser."""
    studio = Studio(pool)
    studio._targets = _TARGETS
    studio.target(PROJECT)
    return studio


def seen(evaluation: Evaluation) -> tuple[float, str | None, tuple[bytes | None, ...]]:
    return evaluation.report.score, evaluation.render.failure, evaluation.render.pictures


def test_a_browser_lost_between_two_pages_costs_the_second_one_nothing(studio: Studio) -> None:
    with studio.pool.borrow() as browser:
        processes = map(psutil.Process, browser.processes())
        next(process for process in processes if process.name().startswith("chromiu")).kill()
    evaluation = studio.evaluate(PROJECT, PROJECT.code())
    assert (evaluation.report.score, evaluation.render.failure) == (pytest.approx(100), None)


def test_a_driver_lost_while_a_page_is_rendered_changes_nothing(studio: Studio) -> None:
    code = {"index.html": "<h1>Words</h1>"}
    undisturbed = seen(Studio(studio.pool).evaluate(PROJECT, code))
    with studio.pool.borrow() as browser:
        driver = browser.process.pid
    killer = threading.Timer(0.2, os.kill, (driver, signal.SIGKILL))
    killer.start()
    assert seen(studio.evaluate(PROJECT, code)) == undisturbed
    killer.join()


class Mortal(Browser):
    """A browser whose driver dies whenever it opens a page."""

    def _open(self, viewport: tuple[int, int]) -> dict[str, int]:
        self.process.kill()
        self.process.wait()
        return super()._open(viewport)


def test_a_page_that_no_browser_survives_fails_and_is_not_remembered(studio: Studio) -> None:
    living, mortal = studio.pool, BrowserPool(Mortal)
    studio.pool = mortal
    try:
        evaluation = studio.evaluate(PROJECT, PROJECT.code())
        assert (evaluation.report.score, evaluation.render.failure) == (0, "crash")
        assert (mortal.started, mortal.lost) == (3, 3)
        studio.pool = living
        assert studio.evaluate(PROJECT, PROJECT.code()).report.score == pytest.approx(100)
    finally:
        mortal.close()
