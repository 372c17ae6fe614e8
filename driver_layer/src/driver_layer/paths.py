"""Paths that somebody gave: what the system says of them becomes one line of a layer's own error.

Layers above use it, too, each with its own errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def looking_at(
    path: str | os.PathLike[str], refused: Callable[[str], Exception]
) -> Generator[None]:
    """Let a layer's own error say what is wrong with a path, or with what lies there.

    That goes for questions, too: in a folder that is closed to us, and of a name that is too long,
    the system does not even tell whether there is a file (``Path.exists`` raises).

    Args:
        path: that is looked at, read or written.
        refused: makes the error of a line.

    Raises:
        Exception: what ``refused`` makes: the system refuses the path.
    """
    try:
        yield
    except OSError as error:
        raise refused(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        if _may_be_a_name(path):  # then it is about something else
            raise
        raise refused(f"{str(path)!r} cannot be a path: {error}") from None


def _may_be_a_name(path: str | os.PathLike[str]) -> bool:
    """Whether the system takes such text: with a null character, say, it does not."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False
