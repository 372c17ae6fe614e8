"""Arguments and fields of the public API, read as their annotations say.

Each public function is marked ``checked``, and each dataclass that a caller fills in inherits from
``Checked``: a value of another kind is rejected by name before the function begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from inspect import BoundArguments, Parameter, Signature, signature
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar, get_type_hints

from genai_layer.errors import ArgumentError
from genai_layer.kinds import Mismatch, brief, describe, read

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a public function: its arguments are of the annotated kinds.

    Keyword arguments without a name of their own, ``**kwargs``, are not read.
    """
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = _form(function).signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises Python's message
        read_bound(owner, function, bound)
        return function(*bound.args, **bound.kwargs)

    return call


def read_bound(owner: str, function: Callable[..., Any], bound: BoundArguments) -> None:
    """Replace arguments by what their annotations read.

    Raises:
        ArgumentError: an argument is of another kind.
    """
    bound.arguments |= read_named(owner, bound.arguments, _form(function).hints)


def read_named(owner: str, values: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as annotations of the same names say; others are left out.

    Raises:
        ArgumentError: a value is of another kind.
    """
    return {
        name: read_as(f"{owner}: {name}", value, hints[name])
        for name, value in values.items()
        if name in hints
    }


def read_as(name: str, value: Any, hint: Any) -> Any:
    """Return a value as an annotation says; see ``kinds``.

    Args:
        name: name of the value, for messages.
        value: the value.
        hint: the annotation.

    Raises:
        ArgumentError: the value is of another kind.
    """
    try:
        return read(value, hint)
    except Mismatch:
        raise ArgumentError(f"{name} = {brief(value)}: pass {describe(hint)}") from None


@dataclass(frozen=True, slots=True)
class _Form:
    signature: Signature
    hints: Mapping[str, Any]
    """Annotations of the named parameters."""


@cache
def _form(function: Callable[..., Any]) -> _Form:
    found = signature(function)
    named = {
        name: each.annotation
        for name, each in found.parameters.items()
        if each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        and each.annotation is not Parameter.empty
    }
    # Annotations of results may name classes that only type checkers import.
    owner = SimpleNamespace(__annotations__=named)
    return _Form(found, get_type_hints(owner, function.__globals__, include_extras=True))


class Checked:
    """Base of dataclasses with slots: an assignment reads the value as the field's annotation.

    Unknown names raise AttributeError.

    Raises:
        ArgumentError: a value is of another kind.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        hints = _hints(type(self))
        if name in hints:
            value = read_as(f"{type(self).__name__}.{name}", value, hints[name])
        super().__setattr__(name, value)


@cache
def _hints(owner: type) -> dict[str, Any]:
    return get_type_hints(owner, include_extras=True)
