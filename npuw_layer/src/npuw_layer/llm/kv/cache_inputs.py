"""Inputs of static models that read K or V, told from the variables of traits."""

from __future__ import annotations

from npuw_layer.backends.protocols import READ_PREFIX, TensorInfo
from npuw_layer.tensors.traits import traits


def is_cache(variable: str) -> bool:
    """Return whether a variable is K or V: no trait owns it."""
    return not any(trait.owns(variable) for trait in traits())


def is_cache_input(info: TensorInfo) -> bool:
    """Return whether an input of a static model reads K or V."""
    return info.name.startswith(READ_PREFIX) and is_cache(info.name.removeprefix(READ_PREFIX))
