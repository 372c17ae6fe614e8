"""Clients that are programs of npm, which are in PATH: their versions, and their runs."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from shutil import which


def version_of(program: str, package: str) -> str:
    """Return the version of a program.

    Raises:
        PackageNotFoundError: the package is not installed.
    """
    if which(program) is None:
        raise PackageNotFoundError(package)
    found = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return found.stdout.split()[-1]


def run(command: list[str], home: Path, **settings: str) -> None:
    """Run a program without the user's settings, in the root folder: requests name the folder.

    Raises:
        CalledProcessError, TimeoutExpired: the program failed, or takes longer than two minutes.
    """
    subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", **settings},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=True,
    )
