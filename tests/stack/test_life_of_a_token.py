"""The calls from a generated token to Level Zero equal docs/life-of-a-token.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from genai_layer import LLMPipeline

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("genai_layer", "npuw_layer")
Hop = tuple[str, str]
"""Qualified name of a function, and its file."""

MOST_HOPS = 20
MOST_FUNCTIONS = 180
"""Limit of functions in both packages that one token calls."""

_ROW = re.compile(r"\| \d+ \| `(?P<function>[^`]+)` \| (?P<file>\S+) \|")


def listed() -> list[Hop]:
    text = (ROOT / "docs/life-of-a-token.md").read_text()
    return [(row["function"], row["file"]) for row in _ROW.finditer(text)]


class Trace:
    """Profile of one token, from the callback with its text to the next token's callback."""

    def __init__(self, token: int) -> None:
        self._token = token
        self._written = 0
        self.functions: set[tuple[str, str]] = set()
        """Called functions of our packages, by module and name."""
        self.ways: list[list[Hop]] = []
        """Call stacks within our packages at each call of Level Zero."""
        self.calls: list[str] = []

    def write(self, _: str) -> None:
        self._written += 1
        if self._written == self._token:
            sys.setprofile(self._note)
        elif self._written == self._token + 1:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.startswith(PACKAGES):
            self.functions.add((module, frame.f_code.co_qualname))
        if module.startswith("driver_layer.ze") and name.startswith("ze"):
            self.calls.append(name)
            self.ways.append(way(frame))


def hop(frame: FrameType) -> Hop:
    code = frame.f_code
    file = Path(code.co_filename)
    there = next(parent for parent in file.parents if parent.name == "src").parent.parent
    return code.co_qualname, file.relative_to(there).as_posix()


def way(frame: FrameType | None) -> list[Hop]:
    found: list[Hop] = []
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(PACKAGES):
            found.append(hop(frame))
        frame = frame.f_back
    return found[::-1]


def test_a_token_makes_the_calls_that_the_page_lists(demo: Path) -> None:
    pipe, trace = LLMPipeline(demo, "NPU", MAX_PROMPT_LEN=128), Trace(4)
    try:
        pipe.generate("What is an NPU?", max_new_tokens=8, streamer=trace.write)
    finally:
        sys.setprofile(None)
    assert trace.calls == [
        "zeCommandQueueExecuteCommandLists",
        "zeFenceHostSynchronize",
        "zeFenceReset",
    ], "the generate model and the LM head are submitted together"
    assert all(each == listed() for each in trace.ways)
    assert len(listed()) <= MOST_HOPS
    assert len(trace.functions) <= MOST_FUNCTIONS
