"""Photograph the pages of `vlgym ui` for docs/ui.md: `python docs/photograph.py FOLDER_OF_RUNS docs/images`.

The folder holds a training run with recorded episodes, named `demo`, and evaluations. Needs chromium and chromedriver.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

SIZE = (1280, 800)


def main() -> None:
    """Write five pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}"):
        options.add_argument(argument)
    driver: Any = webdriver.Chrome(options)
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False},
    )
    command = [sys.executable, "-m", "vlgym", "ui", str(asked.runs), "--port", "0", "--out", str(asked.runs / "human")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        driver.get(address[0])

        def follow(*words: str) -> None:
            """Open the page of the first link with each of these words, one page after the other."""
            for word in words:
                driver.get(driver.find_element(By.PARTIAL_LINK_TEXT, word).get_attribute("href"))

        def keep(name: str) -> None:
            driver.save_screenshot(str(asked.out / f"ui_{name}.png"))

        keep("watch")
        follow("demo")
        keep("training")
        follow("vlgym/NumberLine-v1 #")
        keep("turn")
        follow("Gallery")
        keep("gallery")
        follow("Play")
        driver.get(driver.current_url + "?env=vlgym%2FSokoban-v0")
        driver.find_element(By.XPATH, "//button[contains(., 'Begin')]").click()
        WebDriverWait(driver, 30).until(lambda page: page.find_elements(By.TAG_NAME, "img"))
        keep("play")
    finally:
        server.terminate()
        driver.quit()


if __name__ == "__main__":
    main()
