"""kill -9 at any moment of a start: the next start finds a consistent cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

Kill = Callable[..., dict[str, int]]


@pytest.fixture
def kill(tmp_path) -> Kill:
    """Run killing.py; return the counts of its observations."""

    def run(mode: str, *argv: object) -> dict[str, int]:
        (tmp_path / "cache").mkdir()
        script = Path(__file__).with_name("killing.py")
        command = [sys.executable, str(script), mode, str(tmp_path / "cache"), *map(str, argv)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return run


@pytest.mark.long
def test_kills_at_every_line_of_writing_an_entry(kill: Kill) -> None:
    seen = kill("lines")
    assert seen["compiled"] > 50, "killed before the entry existed"
    assert seen["found"] > 20, "killed afterwards"
    assert seen["leftovers"] > 50


@pytest.mark.long
def test_kills_at_random_moments_of_a_start(kill: Kill, tiny: Path) -> None:
    seen = kill("starts", tiny, 16, 1)
    assert seen["killed"] >= 8
    assert seen["written"] >= 4, "some were killed while they wrote entries"
