"""Marks that traits' passes put on variables that are neither K nor V."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr

from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.model import Model, Variable

_MARK = "npuw.no_cache"
"""Attribute of a marked variable's ReadValue."""


def keep_variable(read: ReadValue) -> None:
    """Mark a variable, so that ``store-caches`` leaves it unchanged."""
    read.attributes[_MARK] = UnitAttr()


def is_kept(variable: Variable) -> bool:
    """Return whether a variable is marked."""
    return variable.read is not None and _MARK in variable.read.attributes


def remove_marks(model: Model) -> None:
    """Remove all marks once they are no longer needed."""
    for variable in model.variables():
        if variable.read is not None:
            variable.read.attributes.pop(_MARK, None)
