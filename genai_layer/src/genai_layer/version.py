"""Version of this package, under openvino_genai's name."""

from __future__ import annotations

from genai_layer import __version__


def get_version() -> str:
    """Return the version of genai_layer."""
    return __version__
