"""Registry of traits: the sub-packages of ``npuw_layer.traits``, imported by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

_HOME = "npuw_layer.traits"


@cache
def trait_packages() -> Sequence[str]:
    """Return the names of the traits' packages, sorted."""
    home = importlib.import_module(_HOME)
    found = pkgutil.iter_modules(home.__path__, f"{_HOME}.")
    return tuple(sorted(module.name for module in found if module.ispkg))
