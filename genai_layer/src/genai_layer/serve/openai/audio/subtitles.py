"""Texts with times: SubRip (SRT) and WebVTT.

Source: openai/whisper, whisper/utils.py; W3C, WebVTT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Timed(Protocol):
    """Text from a time to another, in seconds."""

    @property
    def start(self) -> float:
        """Begin."""
        ...

    @property
    def end(self) -> float:
        """End."""
        ...

    @property
    def text(self) -> str:
        """Text."""
        ...


def srt(parts: Sequence[Timed]) -> str:
    """Return subtitles in the form of SubRip."""
    return "".join(f"{number}\n{_cue(one, ',')}" for number, one in enumerate(parts, 1))


def vtt(parts: Sequence[Timed]) -> str:
    """Return subtitles in the form of WebVTT."""
    return "WEBVTT\n\n" + "".join(_cue(one, ".") for one in parts)


def _cue(one: Timed, mark: str) -> str:
    """Return times, a text in which no line is a time, and an empty line."""
    text = one.text.strip().replace("-->", "->")
    return f"{_time(one.start, mark)} --> {_time(one.end, mark)}\n{text}\n\n"


def _time(seconds: float, mark: str) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{mark}{milliseconds:03}"
