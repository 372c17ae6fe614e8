"""Registry of traits: the sub-packages of ``npuw_layer.traits``, imported by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuw_layer.llm.trait import Trait

_HOME = "npuw_layer.traits"


@cache
def trait_packages() -> Sequence[str]:
    """Return the package names of the traits, sorted."""
    home = importlib.import_module(_HOME)
    found = pkgutil.iter_modules(home.__path__, f"{_HOME}.")
    return tuple(sorted(module.name for module in found if module.ispkg))


@cache
def traits() -> tuple[Trait, ...]:
    """Return all traits, in the order of their packages."""
    return tuple(importlib.import_module(name).TRAIT for name in trait_packages())
