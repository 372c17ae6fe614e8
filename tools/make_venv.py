"""Create a virtual environment with pip, even if Python lacks ensurepip.

    python3 tools/make_venv.py .venv

Debian and Ubuntu ship ensurepip in the separate package python3-venv. Without it, the script
fetches pip's wheel from the package index of pip.conf or PIP_INDEX_URL, or the public one, as pip
itself would, checks its hash, and lets the wheel install itself.
"""

from __future__ import annotations

import configparser
import hashlib
import html.parser
import importlib.util
import os
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import venv
from pathlib import Path

DEFAULT_INDEX = "https://pypi.org/simple"


class _Links(html.parser.HTMLParser):
    """Parser of the links in an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if tag == "a" and target:
            name = urllib.parse.urlparse(target).path.rsplit("/", 1)[-1]
            self.found[name] = target


def index_url() -> str:
    """Return the package index that the user or the machine has configured."""
    chosen = os.environ.get("PIP_INDEX_URL")
    if chosen:
        return chosen
    for path in (
        os.environ.get("PIP_CONFIG_FILE", ""),
        "~/.config/pip/pip.conf",
        "~/.pip/pip.conf",
        "/etc/pip.conf",
    ):
        settings = configparser.ConfigParser()
        if path and settings.read(Path(path).expanduser()):
            found = settings.get("global", "index-url", fallback="")
            if found:
                return found
    return DEFAULT_INDEX


def fetch_pip(folder: Path) -> Path:
    """Fetch the newest wheel of pip in the index."""
    page = f"{index_url().rstrip('/')}/pip/"
    links = _Links()
    with urllib.request.urlopen(page) as answer:
        links.feed(answer.read().decode())
    wheels = [name for name in links.found if name.endswith("-py3-none-any.whl")]
    if not wheels:
        raise SystemExit(f"{page} has no wheel of pip")
    newest = max(wheels, key=_version)
    target = urllib.parse.urljoin(page, links.found[newest])
    with urllib.request.urlopen(target) as answer:
        content = answer.read()
    expected = urllib.parse.urlparse(target).fragment.removeprefix("sha256=")
    if expected and hashlib.sha256(content).hexdigest() != expected:
        raise SystemExit(f"{newest}: the hash differs from the index's")
    path = folder / newest
    path.write_bytes(content)
    return path


def _version(wheel: str) -> tuple[int, ...]:
    numbers = wheel.split("-")[1].split(".")
    return tuple(int(n) for n in numbers) if all(n.isdigit() for n in numbers) else (0,)


def main() -> None:
    """Create the environment of the command line."""
    target = Path(sys.argv[1])
    has_ensurepip = importlib.util.find_spec("ensurepip") is not None
    try:
        venv.create(target, with_pip=has_ensurepip, clear=True, symlinks=True)
    except subprocess.CalledProcessError:
        # Debian ships the module without its wheels.
        has_ensurepip = False
        venv.create(target, clear=True, symlinks=True)
    if not has_ensurepip:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                wheel = fetch_pip(Path(scratch))
            except OSError as error:
                sys.exit(f"cannot fetch pip: {error}; install python3-venv, or set PIP_INDEX_URL")
            python = target / "bin" / "python"
            install = ["install", "--quiet", "--no-index", str(wheel)]
            subprocess.run([python, f"{wheel}/pip", *install], check=True)


if __name__ == "__main__":
    main()
