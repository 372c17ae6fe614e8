"""Handles, and checks of a call's arguments, derived from the annotations of the function.

Handles name Level Zero's objects, which are alive until they are destroyed.

The functions of the API are decorated with ``checked``. They receive arguments of the annotated
types only: living handles, descriptors whose fields have their types, numbers and texts.

============================= =====================================================
argument                      result code
============================= =====================================================
None for a handle             INVALID_NULL_HANDLE
None for another pointer      INVALID_NULL_POINTER
an object of another type     INVALID_ARGUMENT
a destroyed handle            INVALID_ARGUMENT
a number outside of an enum   INVALID_ENUMERATION
============================= =====================================================

An annotation with None marks an optional argument. Structures in fields, such as ``pNext``, are
checked for their types only; functions that follow them check their fields by ``check_fields``.

Source: Level Zero core specification 1.17, which lists these codes for each function.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, IntFlag
from functools import cache, wraps
from typing import Any, ClassVar, Never, NoReturn, ParamSpec, SupportsIndex, TypeVar

import numpy as np

from driver_layer.errors import DriverUsageError
from driver_layer.ze import errors
from driver_layer.ze.result import ze_result_t

P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[Any, str], None]
"""Check of a value, with its name for the message; raises ZeError."""

_INTEGERS = (int, np.integer)
_BUFFERS = (bytes, bytearray, memoryview, np.ndarray)


class Handle:
    """Handle of an object; callers hold handles."""

    null: ClassVar = ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    """Result code of a call that receives None instead of the handle."""

    def __init__(self) -> None:
        self.alive = True

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles: a handle names one object of the device.

        Raises:
            DriverUsageError: always.
        """
        raise DriverUsageError(
            f"{type(self).__name__}: a handle cannot be copied or pickled; create another one"
        )


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of the API: check the arguments of each call by their annotations.

    Raises:
        ZeError: as the table of this module; then the function is not called.
    """

    @cache
    def checks() -> dict[str, Check]:
        hints = typing.get_type_hints(function)
        names = inspect.signature(function).parameters
        return {name: _check_of(hints.get(name, Any)) for name in names}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        known = checks()
        for (name, check), value in zip(known.items(), args, strict=False):
            check(value, name)
        for name, value in kwargs.items():
            if name in known:  # else the call below raises TypeError
                known[name](value, name)
        return function(*args, **kwargs)

    return call


def check_fields(structure: Any, name: str) -> None:
    """Check the fields of a structure that is part of another one; raises as ``checked``."""
    kind = typing.cast("type[Any]", type(structure))
    for field, check in _fields(kind).items():
        check(getattr(structure, field), f"{name}.{field}")


@cache
def _fields(kind: type[Any]) -> Mapping[str, Check]:
    """Return the checks of the fields of a structure."""
    hints = typing.get_type_hints(kind)
    return {each.name: _check_of_field(hints[each.name]) for each in dataclasses.fields(kind)}


def _check_of(hint: Any) -> Check:
    """Return the check of an annotation."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _check_of_union(typing.get_args(hint))
    if origin is not None and issubclass(origin, Sequence):
        (element, *_) = typing.get_args(hint)
        return _check_of_sequence(_check_of(element))
    kind: Any = hint if origin is None else origin
    if kind in (Any, object) or not inspect.isclass(kind):
        return _accept  # also for type variables: the function itself checks
    if issubclass(kind, IntEnum):
        return _check_of_enum(kind)
    if dataclasses.is_dataclass(kind):
        return _check_of_structure(kind)
    return _check_of_classes((kind,))


def _check_of_union(members: Sequence[Any], deep: bool = True) -> Check:
    """Return the check of alternatives; that of a single one beside None is the alternative's.

    Args:
        members: the alternatives.
        deep: False checks structures for their types only.
    """
    kinds = [member for member in members if member is not types.NoneType]
    alone = deep and len(kinds) == 1
    check = _check_of(kinds[0]) if alone else _check_of_classes(kinds, alive=False)
    optional = len(kinds) < len(members)

    def either(value: Any, name: str) -> None:
        if value is None and optional:
            return
        check(value, name)
        if deep and not alone and dataclasses.is_dataclass(value):
            check_fields(value, name)

    return either


def _check_of_classes(kinds: Sequence[Any], alive: bool = True) -> Check:
    """Return the check for instances of classes.

    Args:
        kinds: the classes.
        alive: True rejects a destroyed handle.
    """
    classes = tuple(each for kind in kinds for each in _stand_ins(typing.get_origin(kind) or kind))
    label = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
    null = _null_code(kinds)

    def is_one(value: Any, name: str) -> None:
        if value is None:
            raise errors.failed(null, f"{name} is None; give a {label}")
        if not isinstance(value, classes):
            _reject(value, name, label)
        if alive and isinstance(value, Handle) and not value.alive:
            raise errors.invalid_argument(f"{name}: this {label} was destroyed")

    return is_one


def _stand_ins(kind: Any) -> tuple[type, ...]:
    """Return the classes of the values that are accepted for a class."""
    if kind is int or issubclass(kind, IntFlag):
        return _INTEGERS
    return _BUFFERS if kind in (bytes, memoryview) else (kind,)


def _null_code(kinds: Sequence[Any]) -> ze_result_t:
    """Return the code of None for an argument of these classes."""
    (first, *_) = kinds
    if isinstance(first, type) and issubclass(first, Handle):
        return first.null
    if first is int or (isinstance(first, type) and issubclass(first, IntFlag)):
        return ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT
    return ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_POINTER


def _check_of_enum(kind: type[IntEnum]) -> Check:
    def is_member(value: Any, name: str) -> None:
        if not isinstance(value, _INTEGERS):
            _reject(value, name, kind.__name__)
        if value not in kind._value2member_map_:
            raise errors.invalid_enumeration(f"{name}: {value} is no {kind.__name__}")

    return is_member


def _check_of_sequence(check: Check) -> Check:
    def all_are(values: Any, name: str) -> None:
        if values is None:
            code = ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_POINTER
            raise errors.failed(code, f"{name} is None; give a list")
        if not isinstance(values, list | tuple):
            _reject(values, name, "list")
        for index, value in enumerate(typing.cast("Sequence[Any]", values)):
            check(value, f"{name}[{index}]")

    return all_are


def _check_of_structure(kind: type[Any]) -> Check:
    """Return the check of a descriptor and its fields."""
    is_one = _check_of_classes((kind,))

    def has_its_types(value: Any, name: str) -> None:
        is_one(value, name)
        check_fields(value, name)

    return has_its_types


def _check_of_field(hint: Any) -> Check:
    """Return the check of a field; structures in it are checked for their types only."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if any(dataclasses.is_dataclass(kind) for kind in kinds):
        return _check_of_union(kinds, deep=False)
    return _check_of(hint)


def _accept(value: Any, name: str) -> None:
    """Accept any value."""


def _reject(value: Any, name: str, label: str) -> NoReturn:
    raise errors.invalid_argument(f"{name}: {type(value).__name__} is no {label}")
