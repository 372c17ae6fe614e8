"""Headless Chromium for the tests and the screenshots of npu-serve's page.

Needs selenium, and Debian's packages chromium and chromium-driver.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""Debian's package of each program."""

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def missing_package() -> str | None:
    """Return the first of Debian's packages that is not installed, or None."""
    missing = (package for name, package in PROGRAMS.items() if shutil.which(name) is None)
    return next(missing, None)


@contextmanager
def open_browser() -> Iterator[Chrome]:
    """Start a browser with a new profile; its log has the page's messages and errors."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options.add_argument(f"--user-data-dir={profile}")
        driver = Chrome(options, ChromeService(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def set_screen(driver: Chrome, width: int, height: int, colours: str = "light") -> None:
    """Set the window's size in CSS pixels, and the system's preference, "light" or "dark"."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": colours}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
