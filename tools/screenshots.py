"""Screenshots of each state of npu-serve's page, from a running server with the demo model.

    make serve
    python tools/screenshots.py http://127.0.0.1:8000/ FOLDER

Needs what tools/browser.py needs. docs/ has ``page-light.png`` and ``page-dark.png``, with a
palette of 96 colours (``pngquant 96``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from browser import missing_package, open_browser, set_screen
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

DESK = (1440, 1010)
PHONE = (390, 844)
ENDLESS = "x" * 100
"""Question that the demo model answers without an end."""
TOO_LONG = "word " * 2000
QUESTIONS = ("What is an NPU?", "Why are there two models?", "What is a KV cache?")


def main(url: str, folder: Path) -> None:
    """Save a screenshot of each state."""
    missing = missing_package()
    if missing is not None:
        sys.exit(f"{missing}: not installed; run apt-get install {missing}.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, screen, colours, act in STATES:
        with open_browser() as driver:
            set_screen(driver, *screen, colours)
            driver.get(url)
            wait(driver, lambda d: d.find_element(By.ID, "kv-growth-facts").text)
            act(driver)
            time.sleep(0.3)  # the next frame
            driver.save_screenshot(str(folder / f"{name}.png"))
            print(folder / f"{name}.png", "sideways" if overflows(driver) else "")


def wait(driver: Chrome, condition: Callable[[Chrome], object]) -> None:
    """Wait until a condition holds."""
    WebDriverWait(driver, 60, 0.02).until(condition)


def overflows(driver: Chrome) -> bool:
    """Return whether the page is wider than the window."""
    return driver.execute_script("return document.documentElement.scrollWidth > window.innerWidth")


def ask(driver: Chrome, question: str) -> None:
    """Ask a question."""
    driver.find_element(By.ID, "question").send_keys(question + Keys.ENTER)


def nothing(driver: Chrome) -> None:
    """Leave the page as it opens."""


def answered(driver: Chrome) -> None:
    """Ask three questions, one after another."""
    for number, question in enumerate(QUESTIONS, 1):
        ask(driver, question)
        wait(driver, lambda d, n=number: len(d.find_elements(By.CSS_SELECTOR, ".copy")) == n)


def streaming(driver: Chrome) -> None:
    """Ask for an answer without an end."""
    ask(driver, ENDLESS)
    wait(driver, lambda d: d.find_element(By.CSS_SELECTOR, ".answer .text").text)


def failed(driver: Chrome) -> None:
    """Ask more than the model can read."""
    ask(driver, TOO_LONG)
    wait(driver, lambda d: d.find_elements(By.CLASS_NAME, "failure"))


def supposed(tokens: int) -> Callable[[Chrome], None]:
    """Return an act that sets the sliders to a prompt of some tokens."""

    def act(driver: Chrome) -> None:
        driver.find_element(By.ID, "source-if").send_keys(Keys.SPACE)
        field = driver.find_element(By.ID, "if-prompt-number")
        field.send_keys(Keys.CONTROL + "a")  # a call of its own, which releases Control
        field.send_keys(str(tokens))
        wait(driver, lambda d: f"{tokens:,} token" in d.find_element(By.ID, "shown").text)

    return act


def at_pictures(act: Callable[[Chrome], None]) -> Callable[[Chrome], None]:
    """Return an act that scrolls to the pictures after another act."""

    def scrolled(driver: Chrome) -> None:
        act(driver)
        driver.execute_script("document.querySelector('.controls').scrollIntoView()")

    return scrolled


STATES = (
    ("empty", DESK, "light", nothing),
    ("streaming", DESK, "light", streaming),
    ("page-light", DESK, "light", answered),
    ("page-dark", DESK, "dark", answered),
    ("pictures", DESK, "light", at_pictures(answered)),
    ("what-if-300", DESK, "light", supposed(300)),
    ("what-if-3000", DESK, "dark", at_pictures(supposed(3000))),
    ("error", DESK, "light", failed),
    ("phone", PHONE, "light", answered),
    ("phone-device", PHONE, "dark", at_pictures(answered)),
    ("phone-what-if", PHONE, "light", at_pictures(supposed(300))),
)

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
