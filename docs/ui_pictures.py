"""Photograph the pages of `vlgym ui` in Chromium: `python docs/ui_pictures.py`; `--all FOLDER` keeps every page in two
widths, light and dark, to look at. The pictures of docs/images are the wide, light ones, and some of a dark phone.

What is shown is made on the spot: evaluations of the oracle and of random play, and a short training run. Needs the
plugins, the learner and Chromium.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

IMAGES = Path(__file__).parent / "images"
WIDTHS = {"wide": (1280, 900), "phone": (390, 844)}
COLORS = 128
GAME, TABLE = "vlgym/Sokoban-v0", "vlgym/TicTacToe-v0"
PHONE = ("turn", "cover", "play", "gallery")
"""Pages that the docs show on a dark phone, too."""
TRAIN = (
    "baselines.vldac", "--env", "vlgym/NumberLine-v1", "--warm.target", "0.25", "--updates", "12",
    "--record-every", "3",
)  # fmt: skip


def main() -> None:
    """Photograph all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="keep every page in every way here")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="show these records instead of new ones")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        runs = options.runs or Path(place) / "runs"
        if options.runs is None:
            make_records(runs)
        show(runs, options.all)


def show(runs: Path, everything: Path | None) -> None:
    """Serve the records and photograph the pages, which show the folder of games as it is given here."""
    server = subprocess.Popen(
        [sys.executable, "-m", "vlgym", "ui", runs.name, "--port", "0", "--out", f"{runs.name}/human"],
        stdout=subprocess.PIPE, text=True, cwd=runs.absolute().parent,
    )  # fmt: skip
    try:
        address = re.search(r"http://\S+(?=/)", server.stdout.readline() if server.stdout else "")
        if address is None:
            raise SystemExit("vlgym ui did not start.")
        photograph(address[0], everything)
    finally:
        server.terminate()
        server.wait()


def make_records(runs: Path) -> None:
    """Play and train."""
    for policy in ("oracle", "random"):
        command = ("vlgym", "eval", "--policy", policy, "--env", f"{GAME},vlgym/NumberLine-v1", "--episodes", "6")
        subprocess.run([sys.executable, "-m", *command, "--out", str(runs / policy)], check=True)
    subprocess.run([sys.executable, "-m", *TRAIN, "--out", str(runs / "training")], check=True)


def photograph(server: str, everything: Path | None) -> None:
    """Open the pages in Chromium and keep their pictures."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        pages = list_pages(driver, server)
        for name, page in pages.items():
            for width, (across, down) in WIDTHS.items():
                for scheme in ("light", "dark"):
                    size = {"width": across, "height": down, "deviceScaleFactor": 1, "mobile": width == "phone"}
                    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                    feature = {"name": "prefers-color-scheme", "value": scheme}
                    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
                    driver.get(page)
                    WebDriverWait(driver, 90).until(lambda _: driver.execute_script(READY))
                    if everything is not None:
                        everything.mkdir(parents=True, exist_ok=True)
                        driver.save_screenshot(str(everything / f"{name}-{width}-{scheme}.png"))
                    if (width, scheme) == ("wide", "light") or (name in PHONE and (width, scheme) == ("phone", "dark")):
                        keep(driver, f"ui_{name}" + ("_phone" if width == "phone" else ""))
    finally:
        driver.quit()


READY = (
    "return document.readyState === 'complete' && !document.querySelector('[hx-trigger=load]') && "
    "[...document.images].every(each => each.complete || each.getBoundingClientRect().top > innerHeight)"
)


def list_pages(driver: webdriver.Chrome, server: str) -> dict[str, str]:
    """Name and address of what is photographed."""
    found = {"watch": f"{server}/", "gallery": f"{server}/gallery", "card": f"{server}/gallery/env/{GAME}"}

    def first(address: str, css: str) -> str:
        driver.get(address)
        return str(driver.find_element(By.CSS_SELECTOR, css).get_attribute("href"))

    def run(name: str) -> str:
        driver.get(found["watch"])
        options = driver.find_elements(By.CSS_SELECTOR, "select[name=run] option")
        return str(next(each for each in options if each.text == name).get_attribute("value"))

    found["training"] = f"{server}/?run={run('training')}"
    found["turn"] = first(found["training"], "td a")
    pair = f"{server}/compare?a={run('oracle')}&b={run('random')}"
    found["side"] = first(pair, "td a")[:-1] + "1"
    driver.get(f"{server}/play?env={GAME}&split=test")
    driver.find_element(By.CSS_SELECTOR, "form.form button").click()
    WebDriverWait(driver, 90).until(lambda _: "/play/" in driver.current_url)
    found["play"] = f"{driver.current_url}?oracle=1"
    found["begin"] = f"{server}/play?env={TABLE}&split=test"
    driver.get(found["begin"])
    driver.find_element(By.NAME, "opponents").send_keys("me")
    driver.find_element(By.CSS_SELECTOR, "form.form button").click()
    WebDriverWait(driver, 90).until(lambda _: driver.find_elements(By.LINK_TEXT, "Show my side"))
    found["cover"] = driver.current_url
    found["seat"] = driver.find_element(By.LINK_TEXT, "Show my side").get_attribute("href") or ""
    return found


def keep(driver: webdriver.Chrome, name: str) -> None:
    """Keep a picture for the docs, in few colours."""
    with tempfile.TemporaryDirectory() as place:
        driver.save_screenshot(f"{place}/page.png")
        with Image.open(f"{place}/page.png") as picture:
            few = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
            few.save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
