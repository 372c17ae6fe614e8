"""Random calls from four threads, in a process of their own: result codes only, and no leak."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("random_calls.py")
UNKNOWN = "0x7ffffffe"


@pytest.mark.parametrize("way", ["direct", "library"])
def test_random_calls_give_result_codes_and_leave_nothing(built, way) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, way, "1000", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert len(found["results"]) > 8, "many kinds of success and failure"
    assert found["results"]["0x0"] > 500
    assert UNKNOWN not in found["results"], done.stderr[-3000:]
    assert found["handles left"] == []
    assert found["megabytes grown"] < 20
