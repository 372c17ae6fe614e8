"""Views of an answer while it is generated: plain text, or rendered Markdown on a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from genai_layer.tools.terminal import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment, SegmentLines

_INTERVAL = 0.1
"""Minimum seconds between two renderings."""


class View(Protocol):
    """View of one answer."""

    def show(self, text: str) -> None:
        """Add text."""
        ...

    def end(self, failed: bool = False) -> None:
        """Complete the answer; if it failed, the part of it that exists."""
        ...


def view_maker(plain: bool) -> Callable[[], View]:
    """Return the maker of views for stdout: Markdown on a terminal that can move its cursor."""
    dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    if plain or dumb or not sys.stdout.isatty():
        return PlainView
    # Imported here: nothing else needs rich.
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    return lambda: MarkdownView(console)


class PlainView:
    """Text as the model wrote it."""

    def __init__(self) -> None:
        self._begun = False

    def show(self, text: str) -> None:
        """Write text."""
        self._begun = True
        sys.stdout.write(shown(text))
        sys.stdout.flush()

    def end(self, failed: bool = False) -> None:
        """End the line, if there is one."""
        if self._begun or not failed:
            sys.stdout.write("\n")
            sys.stdout.flush()


class MarkdownView:
    """Markdown, rendered again as it grows.

    The last lines, at most a screen, are live: a table or a list may still change them. Lines above
    are printed once, so the terminal can scroll.

    Args:
        console: the terminal.
    """

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._text = ""
        self._printed = 0
        self._next = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, text: str) -> None:
        """Add text; it is rendered soon."""
        self._text += shown(text)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            lines = self._lines()
            self._print(lines[: 1 - self._console.height])
            self._live.update(_joined(lines[self._printed :]), refresh=True)

    def end(self, failed: bool = False) -> None:
        """Print the remaining lines."""
        del failed
        self._live.stop()
        self._print(self._lines())

    def _lines(self) -> list[list[Segment]]:
        from rich.markdown import Markdown

        document = Markdown(self._text, code_theme="ansi_dark", hyperlinks=False)
        return self._console.render_lines(document, pad=False)

    def _print(self, final: list[list[Segment]]) -> None:
        """Print lines that will not change, except those printed before."""
        if len(final) > self._printed:
            self._console.print(_joined(final[self._printed :]), end="")
            self._printed = len(final)


def _joined(lines: list[list[Segment]]) -> SegmentLines:
    from rich.segment import SegmentLines

    return SegmentLines(lines, new_lines=True)
