"""The browser: its pictures, its replacement when lost, and the shop as its only address."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import psutil
import pytest
import urllib3
from markupsafe import escape
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.remote.webdriver import WebDriver
from vlgym_webshop.__main__ import main
from vlgym_webshop.browser import Window, WindowPool
from vlgym_webshop.services import Services, Shop, ShopConfig, get_services
from vlgym_webshop.session import Page

from vlgym.browser.chromium import BrowserError

CONFIG = ShopConfig()
SWEPT = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    """Server and browser, shared for the module."""
    shared = get_services()
    shared.join(shared)
    yield shared
    shared.leave(shared)


@pytest.fixture
def urls(services: Services, shop: Shop) -> list[str]:
    return [services.url(CONFIG, 0, page) for page in list_pages(shop)]


def drive(pool: WindowPool) -> WebDriver:
    """The driver of the pool's browser, which is started where none runs."""
    with pool.borrow() as window:
        return window.driver


def list_processes(pool: WindowPool) -> list[int]:
    (window,) = pool.idle()
    return window.processes()


def list_pages(shop: Shop) -> list[Page]:
    """One page of each kind, of goal 0."""
    goal = shop.catalogue.goal(0)
    query, value = goal.instruction.lower(), goal.options[0]
    options = shop.catalogue.product(goal.asin).options
    chosen = ((next(name for name, values in options.items() if value in values), value),)
    return [
        Page(), Page("results", query), Page("results", query, 2), Page("item", query, 1, goal.asin, chosen),
        Page("detail", query, 1, goal.asin, chosen, "features"), Page("done", query, 1, goal.asin),
    ]  # fmt: skip


def soon(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until a condition holds; return whether it did in time."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def gone(processes: list[int]) -> bool:
    """Wait until no process runs any more; one that ended and waits to be reaped does not."""

    def runs(process: int) -> bool:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
        return False

    return soon(lambda: not any(map(runs, processes)))


def test_a_page_fetched_looks_as_navigated_to(services: Services, shop: Shop, urls: list[str]) -> None:
    fetched = [services.photograph(CONFIG, 0, page) for page in list_pages(shop)]
    assert len({picture.tobytes() for picture in fetched}) == 6
    fresh = WindowPool(services.serve)
    np.testing.assert_array_equal(fresh.photograph(urls[3]), fetched[3])
    assert drive(fresh).current_url == urls[3]
    fresh.close()


def test_clicks_lead_where_the_rules_say(services: Services, shop: Shop, urls: list[str]) -> None:
    driver, pages = drive(services.windows), list_pages(shop)
    for page, url in ((pages[1], urls[1]), (pages[3], urls[3])):
        driver.get(url)
        elements = driver.find_elements("css selector", "[data-click]")
        names = [element.get_attribute("data-click") for element in elements]
        assert sorted(names) == sorted(shop.rules.clickables(page))
        for name in names[:2] + names[-2:]:
            driver.get(url)
            element = driver.find_element("css selector", f'[data-click="{name}"]')
            radio = element.tag_name == "input"
            (element.find_element("xpath", "..") if radio else element).click()
            expected = services.url(CONFIG, 0, shop.rules.after_click(page, name))
            assert soon(lambda address=expected: driver.current_url == address)
            if radio:
                assert driver.find_element("css selector", f'[data-click="{name}"]').is_selected()


def test_typed_words_lead_where_a_search_does(services: Services, urls: list[str]) -> None:
    driver = drive(services.windows)
    driver.get(urls[0])
    driver.find_element("name", "q").send_keys("red & blue mug?")
    driver.find_element("css selector", '[data-click="search"]').click()
    expected = services.url(CONFIG, 0, Page("results", "red & blue mug?"))
    assert soon(lambda: driver.current_url == expected)
    assert len(driver.find_elements("class name", "card")) == 10


@pytest.mark.parametrize("host", ["127.0.0.2", pytest.param("localhost", marks=SWEPT)])
def test_other_machines_and_servers_are_out_of_reach(services: Services, host: str) -> None:
    knocks = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            knocks.append(self.path)
            self.send_error(404)

        def log_message(self, *args: object) -> None:
            del args

    with ThreadingHTTPServer((host, 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for address in (f"http://{host}:{server.server_port}/", "http://192.0.2.1/", "https://example.com/"):
            with pytest.raises(WebDriverException, match="ERR_PROXY_CONNECTION_FAILED"):
                drive(services.windows).get(address)
        server.shutdown()
    assert knocks == []


def test_the_server_answers_not_found_to_what_is_no_page(urls: list[str]) -> None:
    root, shop = urls[0].split("/shop0")[0], "/shop0/0"
    other = ("/", "/shop0/999999/search", "/other/0/search")
    wrong = (*other, f"{shop}/item?asin=NOPE", f"{shop}/results?p=1x", f"{shop}/no")
    assert {path: urllib3.request("GET", root + path).status for path in wrong} == dict.fromkeys(wrong, 404)


def test_a_page_runs_nothing_that_a_text_of_the_catalogue_brings(
    services: Services, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, hostile = list_pages(shop)[3], "<script>steal()</script>"
    product = replace(shop.catalogue.product(page.asin), title=hostile)
    monkeypatch.setattr(shop.catalogue, "product", lambda asin: product)
    answer = urllib3.request("GET", services.url(CONFIG, 0, page))
    assert answer.data.count(escape(hostile).encode()) == 1
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_pages_show_prices_features_and_the_chosen_colour(services: Services, shop: Shop) -> None:
    found = Page("results", "<q> coffee mugs")
    mugs = [shop.catalogue.product(asin) for asin in shop.rules.results(found)]
    product = max(mugs, key=lambda each: len(each.bullets))
    page = replace(found, kind="item", asin=product.asin)
    colours = [replace(page, options=(("color", value),)) for value in product.options["color"]]
    pages = found, replace(page, kind="detail", detail="features"), *colours
    urls = [services.url(CONFIG, 0, each) for each in pages]
    results, features, *items = (urllib3.request("GET", url).data.decode() for url in urls)
    assert all(mug.price_tag in results for mug in mugs)
    assert all(escape(text) in features for text in product.bullets)
    assert len({item.split("</svg>")[0] for item in items}) == len(colours)


def test_shops_have_addresses_and_processes_services_of_their_own(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert services.url(CONFIG, 0, Page()) != services.url(ShopConfig(nouns="rules"), 0, Page())
    monkeypatch.setattr("vlgym_webshop.services._current", (os.getpid() - 1, services))
    assert get_services() is not services


@pytest.mark.parametrize("victims", [pytest.param(slice(0, 1), marks=SWEPT), slice(1, None)])
def test_a_killed_process_is_replaced(services: Services, urls: list[str], victims: slice) -> None:
    pool = WindowPool(services.serve)
    pool.photograph(urls[1])
    family = list_processes(pool)
    for process in family[victims]:
        with suppress(ProcessLookupError):  # it ended with its parent already
            os.kill(process, signal.SIGKILL)
    after = pool.photograph(urls[3])
    assert pool.lost == 1
    np.testing.assert_array_equal(after, services.windows.photograph(urls[3]))
    pool.close()
    assert gone(family)


def test_a_picture_is_taken_again_where_a_process_was_lost_meanwhile(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.photograph(CONFIG, 1, Page())
    lost, answers = services.windows.lost, iter((False, True))
    monkeypatch.setattr(Window, "intact", property(lambda window: next(answers)))
    services.photograph(CONFIG, 2, Page())
    assert services.windows.lost == lost + 1


def test_a_hanging_browser_is_replaced(services: Services, urls: list[str]) -> None:
    pool = WindowPool(services.serve)  # only the second page is hurried
    pool.photograph(urls[0])
    drive(pool).command_executor.client_config.timeout = 3.0  # type: ignore[union-attr]
    family = list_processes(pool)
    for process in family[1:]:
        os.kill(process, signal.SIGSTOP)
    pool.photograph(urls[1])
    assert pool.lost == 1
    pool.close()
    assert gone(family)


def test_an_endless_page_is_given_up_after_three_browsers() -> None:
    stop, asked = threading.Event(), []

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stop.wait(60)

        def log_message(self, *args: object) -> None:
            del args

    class Host:
        port = 4711

        def serve_on(self, listener: socket.socket) -> Callable[[], None]:
            server = ThreadingHTTPServer(("127.0.0.1", 0), Endless, bind_and_activate=False)
            server.socket.close()
            server.socket = listener
            threading.Thread(target=server.serve_forever, daemon=True).start()
            asked.append(listener)
            return server.shutdown

    pool = WindowPool(Host, page_seconds=1.0)
    with pytest.raises(BrowserError, match="failed 3 times"):
        pool.photograph("http://127.0.0.1:4711/")
    assert (pool.lost, len(asked)) == (3, 3)
    pool.close()
    stop.set()


def test_the_shop_can_be_served_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "vlgym_webshop", "--port", port, "--goal", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert f"http://127.0.0.1:{port}/shop/7/search" in process.stdout.readline()
            answer = urllib3.request("GET", f"http://127.0.0.1:{port}/shop/7/results?q=red+mug")
            assert (answer.status, b"Total results:" in answer.data) == (200, True)
            wrong = ([], ["--data", "nowhere"], ["--goal", "12087"])
            assert [main(["--port", port, *each]) for each in wrong] == [1, 1, 1]
            errors = capsys.readouterr().err
            assert re.search("is taken(?s:.*)is not a folder(?s:.*)from 0 to 12086", errors)
        finally:
            process.terminate()
