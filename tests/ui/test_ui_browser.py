"""The pages in a real headless Chromium: scripts, keys, live lists, hostile records, games."""

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ui_records import play, row, write, write_raw

from vlgym.play.trajectory import read_trajectories

selenium = pytest.importorskip("selenium.webdriver", reason="selenium comes with vlgym-webshop and vlgym-webui")
By = pytest.importorskip("selenium.webdriver.common.by").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
Wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

CHROMIUM = shutil.which("chromedriver") and shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="chromium or chromium-driver is not installed"),
    pytest.mark.xdist_group("ui browser"),
]
SECONDS = 40  # most that a page may take
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
FAMILIES = (
    "vlgym/NumberLine-v1", "vlgym/OneRoomS6Fast-v1", "vlgym/ALFWorldLook-v1", "vlgym/WebShop-v1",
    "vlgym/WebUI-v1", "vlgym/Football-v1", "vlgym/SeeDigit-v0",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of three episodes, and one with a hostile record."""
    root = tmp_path_factory.mktemp("records")
    for name in ("one", "two"):
        lost = play(2, (0.0,), success=False)
        write(root / name, play(0, (0.0, 0.5, 1.0)), play(1, success=name == "one"), lost)
    write_raw(root / "bad", row(reply=HOSTILE, env_id=HOSTILE, parse=HOSTILE, text=HOSTILE))
    return root


@pytest.fixture(scope="module")
def server(folder: Path, browser) -> Iterator[str]:
    """The address of a `vlgym ui` that shows the folder."""
    words = ["ui", str(folder), "--port", "0", "--out", str(folder / "human")]
    command = [sys.executable, "-m", "vlgym", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(SECONDS, child.kill)
    guard.start()
    assert child.stdout is not None
    address = re.search(r"http://\S+", child.stdout.readline())
    guard.cancel()
    assert address is not None
    browser.get(address[0])  # its token becomes a cookie
    yield address[0].partition("/?")[0]
    child.terminate()
    child.wait(timeout=SECONDS)
    child.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    options = selenium.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1000"):
        options.add_argument(argument)
    driver = selenium.Chrome(options, selenium.ChromeService(shutil.which("chromedriver")))
    driver.set_page_load_timeout(SECONDS)
    yield driver
    driver.quit()


def wait(driver, css: str, text: str = ""):
    """The first element that fits and holds a text, when it is there."""

    def look(_: object):
        nodes = [each for each in driver.find_elements(By.CSS_SELECTOR, css) if text in each.text]
        return nodes[0] if nodes else False

    return Wait(driver, SECONDS, ignored_exceptions=[Exception]).until(look, f"{css} {text}")


def wait_after(driver, turn: int) -> str:
    """The heading of the page when that turn is over."""

    def look(_: object):
        heading = driver.find_element(By.CSS_SELECTOR, "main h2").text
        return heading if f"Turn {turn} " not in heading else ""

    return Wait(driver, SECONDS, ignored_exceptions=[Exception]).until(look, f"after turn {turn}")


ORACLE = "section[aria-label='Your turn'] pre.reply"


def wait_for_picture(driver, css: str, width: int) -> None:
    look = f"return document.querySelector('{css}').naturalWidth"
    Wait(driver, SECONDS).until(lambda _: driver.execute_script(look) == width)


def press(driver, key: str) -> None:
    driver.find_element(By.TAG_NAME, "body").send_keys(key)


def test_no_page_is_wider_than_a_telephone(browser, server: str) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    card = "/gallery/env/vlgym/NumberLine-v1"
    places = ("/episodes", "/play", "/gallery", card, "", ".run h2 a", "td a")
    try:
        for place in places:
            browser.get(f"{server}{place}") if place[:1] in ("", "/") else wait(browser, place).click()
            wait(browser, "h1")
            assert browser.execute_script("return document.documentElement.scrollWidth") == 390, place
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_arrow_keys_walk_through_the_turns_and_the_episodes(browser, server: str) -> None:
    browser.get(f"{server}/episodes?sort=newest&result=won")
    wait(browser, "td a", "Line-v0 #0").click()
    wait(browser, ".steps", "turn 1 of 3")
    browser.execute_script("window.kept = true")
    press(browser, Keys.ARROW_RIGHT)
    wait(browser, ".steps", "turn 2 of 3")
    press(browser, Keys.ARROW_LEFT)
    wait(browser, ".steps", "turn 1 of 3")
    press(browser, Keys.ARROW_DOWN)
    wait(browser, "h1", "#1")
    assert browser.execute_script("return window.kept")
    wait_for_picture(browser, "img.own", 32)
    press(browser, Keys.ARROW_UP)
    press(browser, " ")  # plays to the end
    wait(browser, ".steps", "turn 3 of 3")


def test_filters_and_new_records_change_the_list_in_place(browser, server: str, folder: Path) -> None:
    browser.get(f"{server}/episodes")
    wait(browser, ".count", "of 7 episodes")
    browser.execute_script("window.kept = true")
    write(folder / "two", play(9))
    wait(browser, ".count", "of 8 episodes")
    browser.find_element(By.CSS_SELECTOR, "select[name=result] option[value=lost]").click()
    wait(browser, ".count", "3 of 8")
    assert "result=lost" in browser.current_url
    browser.find_element(By.ID, "q").send_keys("nobody says this")
    wait(browser, ".count", "0 of 8")
    assert browser.execute_script("return window.kept")


def test_a_hostile_record_runs_nothing_and_nothing_is_asked_elsewhere(browser, server: str) -> None:
    browser.get(f"{server}/episodes?q=onerror")
    link = wait(browser, "td a", "<img")
    assert "taken" not in browser.title
    link.click()
    assert HOSTILE in wait(browser, "pre.reply").text
    assert browser.title.startswith("<img")
    names = "return performance.getEntriesByType('resource').map(each => each.name)"
    urls = browser.execute_script(names)
    assert urls
    assert all(url.startswith(server) for url in urls)
    assert not [line for line in browser.get_log("browser") if "Refused" in line["message"]]


OTHERS = [pytest.param(each, marks=pytest.mark.exhaustive) for each in FAMILIES[1:]]


@pytest.mark.parametrize("env_id", [FAMILIES[0], *OTHERS])
def test_a_whole_game_is_played_by_typing(browser, server: str, folder: Path, env_id: str) -> None:
    browser.get(f"{server}/play?env={env_id}&split=test")
    wait(browser, "form.form button").click()
    wait(browser, "a[role=switch]", "oracle").click()
    for turn in range(1, 200):
        wait(browser, "h2", f"Turn {turn} ")
        reply, field = wait(browser, ORACLE).text, wait(browser, "textarea[name=reply]")
        browser.execute_script("arguments[0].value = arguments[1]", field, reply)
        wait(browser, "form.write button").click()
        heading = wait_after(browser, turn)
        if heading.startswith(("Won", "Lost")):
            break
    (run,) = (folder / "human").glob(env_id.split("/")[1] + "-001")
    ((*_, last),) = read_trajectories(run)
    assert (last.turn + 1, last.success) == (turn, heading.startswith("Won"))
    assert last.terminated or last.truncated
