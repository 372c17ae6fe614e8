"""Names, members and calls of the real openvino_genai, compared live.

``tools/make_compatibility_page.py`` compares; its findings are in
docs/openvino-genai-compatibility.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PAGE = TOOLS / "make_compatibility_page.py"


def test_every_difference_has_a_reason_and_stands_in_the_page() -> None:
    done = subprocess.run([sys.executable, PAGE, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_difference_without_a_reason_and_a_reason_without_a_difference_are_named(
    load_module: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    page = load_module(PAGE)
    monkeypatch.setattr(page, "REASONS", {("known.*", "gone"): "a reason"})
    found = [page.Difference("known.one", "1", "2"), page.Difference("new", "member", "absent")]
    assert page.faults(found) == [
        "no reason: new: 'member' there, 'absent' here",
        "no difference: gone",
    ]
