"""Calls of a constructor that has several forms, each a function with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, TypeVar

from genai_layer.checked import read_bound

R = TypeVar("R")


def call_form(
    owner: str, form: Callable[..., R], given: Sequence[Any], named: Mapping[str, Any]
) -> R:
    """Call a form with the arguments of its constructor.

    Args:
        owner: name of the class, for messages.
        form: the function.
        given: arguments by position.
        named: arguments by name.

    Raises:
        TypeError: an argument is missing, unknown or given twice.
        ArgumentError: an argument is of another kind than annotated.
    """
    try:
        bound = signature(form).bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{owner}: {error}; see help({owner})") from None
    read_bound(owner, form, bound)
    return form(*bound.args, **bound.kwargs)
