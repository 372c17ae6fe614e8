"""Marks of variables that are neither K nor V, which passes of traits leave and ours respect."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr

from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.model import Model, Variable

_MARK = "npuw.no_cache"
"""The attribute of a variable's ReadValue."""


def keep_variable(read: ReadValue) -> None:
    """Mark a variable: ``store-caches`` leaves it alone."""
    read.attributes[_MARK] = UnitAttr()


def is_kept(variable: Variable) -> bool:
    """Return whether a variable is marked."""
    return variable.read is not None and _MARK in variable.read.attributes


def remove_marks(model: Model) -> None:
    """Remove all marks, once they have been respected."""
    for variable in model.variables():
        if variable.read is not None:
            variable.read.attributes.pop(_MARK, None)
