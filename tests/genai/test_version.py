"""Version of the package."""

from __future__ import annotations

from importlib.metadata import version

import genai_layer


def test_the_version_is_that_of_the_installed_package() -> None:
    assert genai_layer.get_version() == genai_layer.__version__ == version("genai_layer")
