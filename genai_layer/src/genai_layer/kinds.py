"""Kinds of values: an annotation reads a value, or rejects it, and describes what it accepts.

Values of the same meaning are accepted, as by openvino_genai: any sequence, set, generator or array
of one dimension for a list, bytes in UTF-8 for a text, numpy's numbers. A text or a dictionary is
no list of its parts.

Source: docs/reference/genai.md#kinds-of-arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from numbers import Real
from operator import index
from types import GeneratorType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import numpy as np

Reader = Callable[[Any], Any]
"""Returns a value as its annotation says; raises Mismatch."""


class Mismatch(Exception):
    """A value is not of the annotated kind."""


@dataclass(frozen=True, slots=True)
class Least:
    """Smallest integer that an annotation accepts."""

    number: int


Unsigned = Annotated[int, Least(0)]


def read(value: Any, hint: Any) -> Any:
    """Return a value as an annotation says: lists for sequences, text for bytes.

    Raises:
        Mismatch: the value is of another kind.
    """
    # The alternatives of a union would each consume a generator.
    given = [*cast("Iterable[Any]", value)] if isinstance(value, GeneratorType) else value
    return _reader(hint)(given)


@cache
def _reader(hint: Any) -> Reader:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin in _GENERICS:
        return _GENERICS[origin](parts)
    return (_protocol if getattr(hint, "_is_protocol", False) else _instance)(origin or hint)


def _bool(value: Any) -> bool:
    return bool(_required(value, isinstance(value, np.bool_ | Real)))


def _int(value: Any) -> int:
    """Return an integer of 64 bits, with or without a sign."""
    try:
        number = index(value)
    except TypeError:
        raise Mismatch from None
    return _required(number, -(1 << 63) <= number < 1 << 64)


_LARGEST = float(np.finfo(np.float32).max)


def _float(value: Any) -> float:
    """Return a number that is finite in f32, the type of openvino_genai's parameters."""
    number = _required(value, isinstance(value, Real))
    return float(_required(number, abs(number) <= _LARGEST))


def _str(value: Any) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else _instance(str)(value)
    except UnicodeDecodeError:
        raise Mismatch from None


def _anything(value: Any) -> Any:
    return value


def _instance(kind: Any) -> Reader:
    return lambda value: _required(value, isinstance(value, kind))


def _protocol(kind: Any) -> Reader:
    # Arrays and bytes have members of the same names, which do something else.
    return lambda value: _required(
        value, isinstance(value, kind) and not isinstance(value, np.ndarray | np.generic | bytes)
    )


def _required(value: Any, fits: bool) -> Any:
    if not fits:
        raise Mismatch
    return value


def _union(parts: Sequence[Any]) -> Reader:
    readers = [*map(_reader, parts)]

    def take(value: Any) -> Any:
        for one in readers:
            try:
                return one(value)
            except Mismatch:
                continue
        raise Mismatch

    return take


_BYTES = (str, bytes, bytearray, memoryview)


def listed(value: Any) -> list[Any]:
    """Return a value's elements; those of a text or a dictionary are none.

    Raises:
        Mismatch: the value is not several values.
    """
    if isinstance(value, np.ndarray):
        return _required(value, value.ndim == 1).tolist()
    several = isinstance(value, Sequence | AbstractSet | ValuesView | Iterator)
    return [*_required(value, several and not isinstance(value, _BYTES))]


_PLAIN = frozenset({int, float, str})


def _list(parts: Sequence[Any]) -> Reader:
    element = parts[0]
    take = _reader(element)

    def take_all(value: Any) -> list[Any]:
        values = listed(value)
        if element in _PLAIN and {*map(type, values)} <= {element}:
            return values
        return [take(one) for one in values]

    return take_all


def _set(parts: Sequence[Any]) -> Reader:
    return lambda value: {*_list(parts)(value)}


def _tuple(parts: Sequence[Any]) -> Reader:
    readers = [*map(_reader, parts)]

    def take(value: Any) -> tuple[Any, ...]:
        values = listed(value)
        _required(values, len(values) == len(readers))
        return tuple(one(part) for one, part in zip(readers, values, strict=True))

    return take


def _dict(parts: Sequence[Any]) -> Reader:
    key, item = map(_reader, parts)

    def take(value: Any) -> Any:
        given = _required(value, isinstance(value, Mapping))
        found = {key(name): item(one) for name, one in given.items()}
        # Parsers extend a message in place.
        same = all(name in given and given[name] is one for name, one in found.items())
        return given if same else found

    return take


def _literal(parts: Sequence[Any]) -> Reader:
    return lambda value: _required(value, isinstance(value, str) and value in parts)


def _annotated(parts: Sequence[Any]) -> Reader:
    take, limits = _reader(parts[0]), [one.number for one in parts[1:] if isinstance(one, Least)]

    def bounded(value: Any) -> Any:
        found = take(value)
        return _required(found, all(found >= limit for limit in limits))

    return bounded


_SCALARS: dict[Any, Reader] = {
    Any: _anything,
    object: _anything,
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
}
_GENERICS: dict[Any, Callable[[Sequence[Any]], Reader]] = {
    Union: _union,
    UnionType: _union,
    Annotated: _annotated,
    Literal: _literal,
    list: _list,
    Sequence: _list,
    Iterable: _list,
    set: _set,
    tuple: _tuple,
    dict: _dict,
    Mapping: _dict,
}


def describe(hint: Any, plural: bool = False) -> str:
    """Return a phrase for the values that an annotation accepts, e.g. "a list of str"."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _alternatives(dict.fromkeys(describe(part, plural) for part in parts))
    if origin is Annotated:
        limits = [f" from {one.number}" for one in parts[1:] if isinstance(one, Least)]
        return describe(parts[0], plural) + "".join(limits)
    if origin is Literal:
        return _alternatives(map(repr, parts))
    if _GENERICS.get(origin) in (_list, _set):
        elements = "" if parts[0] is Any else f" of {describe(parts[0], plural=True)}"
        return f"{'lists' if plural else 'a list'}{elements}"
    if _GENERICS.get(origin) is _dict:
        key, item = (describe(part, plural=True) for part in parts)
        return f"{'dict' if plural else 'a dict'} of {key} to {item}"
    if origin is tuple:
        return f"({', '.join(describe(part, plural=True) for part in parts)})"
    name: str = (origin or hint).__name__
    name = _NAMES.get(name, name)
    if plural or hint is NoneType:
        return name
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"


def _alternatives(phrases: Iterable[str]) -> str:
    *first, last = phrases
    return f"{', '.join(first)} or {last}" if first else last


_NAMES = {
    "NoneType": "None",
    "float": "finite float",
    "Any": "any value",
    "Callable": "callable",
    "Decodes": "Tokenizer",
    "HasData": "tensor",
    "Mapping": "dict",
    "PathLike": "path",
    "ndarray": "array",
    "object": "any value",
}
"""Names for readers, by those of classes."""

_LONGEST = 60


def brief(value: object) -> str:
    """Return the beginning of a value's printed form, in one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
