"""Progress of loading a model, on a terminal's stderr."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING

from genai_layer.abilities import ReportsProgress
from genai_layer.runtime import Core

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0
"""Seconds before progress is shown."""


@contextlib.contextmanager
def loading(core: Core) -> Generator[None]:
    """Show the progress of the models that a runtime loads in the block, after the first second.

    A line shows the elapsed time; others the activities that the runtime reports, with per cent.
    Nothing is shown if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    lines = _lines()
    lines.add_task("loading the model", total=None, count="")
    patience = threading.Timer(_PATIENCE, lines.start)
    patience.start()
    reports = (
        core.reporting_progress(_Activities(lines).show)
        if isinstance(core, ReportsProgress)
        else None
    )
    try:
        with reports or contextlib.nullcontext():
            yield
    finally:
        patience.cancel()
        patience.join()
        lines.stop()


class _Activities:
    """A line for each activity that has begun and not ended."""

    def __init__(self, lines: Progress) -> None:
        self._lines = lines
        self._tasks: dict[str, TaskID] = {}

    def show(self, activity: str, done: int, total: int, unit: str) -> None:
        """Receive a report; see ``ProgressListener``."""
        from rich.filesize import decimal

        if done >= total:
            if activity in self._tasks:
                self._lines.remove_task(self._tasks.pop(activity))
            return
        if activity not in self._tasks:
            self._tasks[activity] = self._lines.add_task(activity, total=total, count="")
        count = (
            f"{decimal(done)} of {decimal(total)}" if unit == "B" else f"{done} of {total} {unit}"
        )
        self._lines.update(self._tasks[activity], completed=done, count=count)


def _lines() -> Progress:
    # Imported here: progress is rarely shown.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(30),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
