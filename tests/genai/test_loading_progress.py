"""Progress of loading a model, as commands show it on a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from genai_layer.abilities import ProgressListener, ReportsProgress
from genai_layer.testing.memory_runtime import MemoryCore, chain
from genai_layer.testing.toy import answering_core
from genai_layer.tools import pipeline_options
from genai_layer.tools.pipeline_options import loading


class Terminal(io.StringIO):
    """A stream that reports being a terminal."""

    def isatty(self) -> bool:
        return True


class ReportingCore(MemoryCore):
    """A runtime that reports its progress."""

    heard: ProgressListener

    @contextmanager
    def reporting_progress(self, listener: ProgressListener, /) -> Generator[None]:
        self.heard = listener
        yield


@pytest.mark.parametrize(
    ("stream", "patience", "shown"),
    [(Terminal(), 0.0, True), (Terminal(), 60.0, False), (io.StringIO(), 0.0, False)],
)
def test_activities_of_the_runtime_appear_only_on_a_terminal_and_only_after_a_delay(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float, shown: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(pipeline_options, "_PATIENCE", patience)
    core = ReportingCore(chain([1, 2], 4))
    assert isinstance(core, ReportsProgress)
    with loading(core):
        if stream.isatty():
            core.heard("reading", 5_000_000, 10_000_000, "B")
            core.heard("compiling", 1, 4, "blobs")
            core.heard("reading", 10_000_000, 10_000_000, "B")
            core.heard("never begun", 1, 1, "blobs")
    text = stream.getvalue()
    assert ("25% 1 of 4 blobs" in text) == shown
    assert "never begun" not in text


def test_a_runtime_that_reports_nothing_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(pipeline_options, "_PATIENCE", 0.0)
    with loading(answering_core("hey")):
        pass
    assert "loading the model" in stream.getvalue()
