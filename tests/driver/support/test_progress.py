"""Progress: reports reach the listener of their context, and terminals show them as bars."""

from __future__ import annotations

import io
import sys
import time
from threading import Thread

import pytest

from driver_layer.support import progress as bars
from driver_layer.support.progress import counted, report, reported_to

Report = tuple[str, int, int, str]


class Terminal(io.StringIO):
    """A stream that reports being a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_listener_receives_the_reports_of_its_block_and_thread() -> None:
    heard: list[Report] = []
    report("before", 0, 1, "units")
    with reported_to(lambda *args: heard.append(args)):
        with counted("reading", 10, "B") as advance:
            advance(4)
            advance(8)
        other = Thread(target=report, args=("elsewhere", 0, 1, "units"))
        other.start()
        other.join()
        with reported_to(None):
            report("silent", 0, 1, "units")
    report("after", 0, 1, "units")
    assert heard == [("reading", done, 10, "B") for done in (0, 4, 10, 10)]


def test_an_activity_that_fails_ends() -> None:
    heard: list[Report] = []
    with (
        reported_to(lambda *args: heard.append(args)),
        pytest.raises(ValueError, match="broken"),
        counted("reading", 10, "B"),
    ):
        raise ValueError("broken")
    assert heard[-1] == ("reading", 10, 10, "B")


@pytest.mark.parametrize(
    ("stream", "patience", "shown"),
    [(Terminal(), 0.0, True), (Terminal(), 60.0, False), (io.StringIO(), 0.0, False)],
)
def test_bars_appear_only_on_a_terminal_and_only_after_a_delay(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float, shown: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "_PATIENCE", patience)
    with bars.progress_bars():
        report("compiling", 0, 5, "blobs")
        with counted("quantising", 20_000, "weights") as advance:
            time.sleep(0.12)  # between two drawings
            advance(10_000)
        report("compiling", 2, 5, "blobs")
    assert ("quantising  50%" in stream.getvalue()) == shown
    assert ("2 of 5 blobs" in stream.getvalue()) == shown
    assert ("10.0k of 20.0k weights" in stream.getvalue()) == shown
