"""What lies at paths that somebody gave, where the system may not even tell."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from genai_layer.errors import GenAIError, ModelError


def is_file(path: Path, refused: Callable[[str], GenAIError] = ModelError) -> bool:
    """Tell whether there is a file.

    Args:
        path: where.
        refused: makes the error of a line.

    Raises:
        GenAIError: what ``refused`` makes: the folder is closed to us, the name too long, or the
            like (``Path.is_file`` raises an OSError).
    """
    return stat.S_ISREG(_mode(path, refused))


def is_folder(path: Path, refused: Callable[[str], GenAIError] = ModelError) -> bool:
    """Tell whether there is a folder; it raises the same."""
    return stat.S_ISDIR(_mode(path, refused))


def _mode(path: Path, refused: Callable[[str], GenAIError]) -> int:
    """The kind of what is there; 0 if nothing is."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise refused(f"{path}: {error.strerror or error}") from None
    except ValueError:  # no file can be called so: a null character, say
        return 0
