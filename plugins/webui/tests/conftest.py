"""Shared fixtures: a pool of browsers of the tests' own, and pages in one line."""

from collections.abc import Callable, Iterator

import pytest
from vlgym_webui.browser import Browser, Render
from vlgym_webui.project import Interaction

from vlgym.browser.chromium import BrowserPool, Limits


@pytest.fixture(scope="session")
def pool() -> Iterator[BrowserPool[Browser]]:
    """A pool that ends with the tests."""
    pool = BrowserPool(Browser)
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def unhurried() -> Iterator[Browser]:
    """A browser without limits on time: a busy machine changes no outcome."""
    browser = Browser(Limits(wall_s=100, cpu_s=100))
    yield browser
    browser.close()


def write_page(body: str, script: str, css: str) -> dict[str, bytes]:
    page = (
        "<!DOCTYPE html><html><head><link rel='stylesheet' href='style.css'></head>"
        f"<body>{body}<script src='script.js'></script></body></html>"
    )
    return {"index.html": page.encode(), "style.css": css.encode(), "script.js": script.encode()}


@pytest.fixture
def render(pool: BrowserPool[Browser]) -> Callable[..., Render]:
    """Render a body and a script: `render("<p>Hi</p>", "alert(1)", interaction, ...)`."""

    def run(body: str, script: str = "", *interactions: Interaction, css: str = "", **options: object) -> Render:
        with pool.borrow() as browser:
            return browser.render(write_page(body, script, css), interactions, **options)

    return run


@pytest.fixture
def calm(unhurried: Browser) -> Callable[..., Render]:
    """Render a body and a script without limits on time."""
    return lambda body, script="", *interactions: unhurried.render(write_page(body, script, ""), interactions)
