"""kill -9 at any moment of a start: the next one finds everything in order, and says the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills children that it forks")

Kill = Callable[..., dict[str, int]]


@pytest.fixture
def kill(tmp_path) -> Kill:
    """Run killing.py; give how often it saw what."""

    def run(mode: str, *argv: object) -> dict[str, int]:
        (tmp_path / "cache").mkdir()
        script = Path(__file__).with_name("killing.py")
        command = [sys.executable, str(script), mode, str(tmp_path / "cache"), *map(str, argv)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return run


@pytest.mark.long
def test_killed_at_every_line_of_keeping_an_entry(kill: Kill) -> None:
    seen = kill("lines")
    assert seen["compiled"] > 50, "killed before there was an entry"
    assert seen["found"] > 20, "and after"
    assert seen["leftovers"] > 50


@pytest.mark.long
def test_killed_at_random_moments_of_a_start(kill: Kill, tiny: Path) -> None:
    seen = kill("starts", tiny, 16, 1)
    assert seen["killed"] >= 8
    assert seen["written"] >= 4, "some were killed while they kept entries"
