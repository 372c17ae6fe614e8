"""Kinds of files at paths from users, where even the query may fail."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from genai_layer.errors import GenAIError, ModelError


def is_file(path: Path, refused: Callable[[str], GenAIError] = ModelError) -> bool:
    """Return whether a path is a regular file.

    Args:
        path: the path to query.
        refused: creates the error from a message.

    Raises:
        GenAIError: the error of ``refused``: the folder is not accessible, the name is too long, …
            (``Path.is_file`` raises an OSError).
    """
    return stat.S_ISREG(_mode(path, refused))


def is_folder(path: Path, refused: Callable[[str], GenAIError] = ModelError) -> bool:
    """Return whether a path is a folder; the errors are those of ``is_file``."""
    return stat.S_ISDIR(_mode(path, refused))


def _mode(path: Path, refused: Callable[[str], GenAIError]) -> int:
    """Return the mode of a path; 0 if nothing exists there."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise refused(f"{path}: {error.strerror or error}") from None
    except ValueError:  # the name is impossible, e.g. it has a null character
        return 0
