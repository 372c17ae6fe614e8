"""Structures of the host to and from the dataclasses of the same names, field by field.

A field that the dataclass lacks is not read; it is written as zero, or as the length of the field
that it counts. ``pNext`` chains are searched for the structures that the description names; others
are skipped, as the specification asks.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from enum import IntEnum, IntFlag
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from driver_layer.c_abi.declarations import ffi, type_of, wrapped
from driver_layer.c_abi.description.language import INTEGERS, Struct, Variable, description
from driver_layer.c_abi.handle_table import HANDLES
from driver_layer.c_abi.host import Span, host
from driver_layer.ze import errors

LONGEST_CHAIN = 4096
"""Structures in a ``pNext`` chain; a longer one is taken for a circle."""

_MODULES = {"zes": "driver_layer.zes", "zet": "driver_layer.zet"}


@cache
def python_name(name: str) -> Any:
    """Return the function, class or enumeration of the specification; None if there is none."""
    try:
        module = importlib.import_module(_MODULES.get(name[:3], "driver_layer.ze"))
    except ModuleNotFoundError:
        return None
    return getattr(module, name, None)


@cache
def number_reader(type_name: str) -> Callable[[int], Any]:
    """Return a conversion of numbers to members of the enumeration of a name, if it is one.

    The conversion raises ZeError INVALID_ENUMERATION if the enumeration has no such member.
    """
    kind = None if type_name in INTEGERS else python_name(type_name)
    if kind is None or not issubclass(kind, IntEnum | IntFlag):
        return bool if type_name == "bool" else int

    def member(value: int) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise errors.invalid_enumeration(f"{value:#x} is no {type_name}") from None

    return member


def read(name: str, address: int) -> Any:
    """Return the dataclass of a structure in memory; a namespace of its fields if it has none."""
    struct = description().structs[name]
    kind, fields = _fields_to_read(name)
    place = host().structure_at(name, address)
    values = {field.name: value for field in fields for value in _read_field(field, place)}
    if struct.successors:
        after = _next_known(struct, place.pNext)
        values["pNext"] = None if after is None else read(*after)
    return kind(**values)


@cache
def _fields_to_read(name: str) -> tuple[type[Any], tuple[Variable, ...]]:
    """Return the Python class of a structure, and the fields that it has."""
    fields = description().structs[name].fields
    kind = python_name(name)
    if kind is None:
        return SimpleNamespace, fields
    wanted = {field.name for field in dataclasses.fields(kind)}
    return kind, tuple(field for field in fields if field.name in wanted)


def _read_field(field: Variable, place: Any) -> Iterator[Any]:
    """Yield the value of a field, or nothing for a null string, which means the default."""
    raw = getattr(place, field.name)
    if field.type == "text":
        if raw:
            yield host().text_at(raw)
    elif field.type == "bytes":
        yield host().bytes_at(raw, getattr(place, field.length), field.name)
    elif field.type == "pages":
        yield Span(raw, getattr(place, field.length))
    elif field.is_handle:
        yield HANDLES.object_of(raw, field.name)
    elif field.type == "char":
        yield bytes(ffi.buffer(raw))
    elif field.length:
        yield tuple(raw)
    else:
        yield number_reader(field.type)(raw)


def read_request(name: str, address: int) -> Any:
    """Return the first known structure that is chained to a result's; None if there is none."""
    first = host().structure_at("link_t", address).pNext
    after = _next_known(description().structs[name], first)
    return None if after is None else read(*after)


def _next_known(struct: Struct, first: int) -> tuple[str, int] | None:
    """Return the first structure of a chain that the description names, and its address.

    Raises:
        ZeError: INVALID_ARGUMENT: the chain is endless.
    """
    known = {description().structs[name].stype: name for name in struct.successors}
    return next(
        ((known[stype], address) for stype, address in chain(first) if stype in known), None
    )


def chain(address: int) -> Iterator[tuple[int, int]]:
    """Iterate over a chain of structures from one on: stype and address of each.

    Raises:
        ZeError: INVALID_ARGUMENT: the chain is endless.
    """
    for _ in range(LONGEST_CHAIN):
        if not address:
            return
        link = host().structure_at("link_t", address)
        yield link.stype, address
        address = link.pNext
    raise errors.invalid_argument(f"pNext: more than {LONGEST_CHAIN} structures, or a circle")


def write(name: str, address: int, value: Any) -> None:
    """Write a dataclass to a structure in memory; stype and pNext stay the caller's.

    If the value has another structure in ``pNext``, the caller's structure of that type in the
    chain is written, too.
    """
    struct = description().structs[name]
    place = host().structure_at(name, address)
    _write_fields(struct, place, value)
    host().write(address, ffi.buffer(place))
    answer = getattr(value, "pNext", None) if struct.successors else None
    after = None if answer is None else _next_known(struct, place.pNext)
    if after is not None and after[0] == type(answer).__name__:
        write(*after, answer)


def structure_bytes(name: str, value: Any) -> bytes:
    """Return a dataclass as the bytes of its structure."""
    place = ffi.new(f"{name} *")
    _write_fields(description().structs[name], place, value)
    return bytes(ffi.buffer(place))


def _write_fields(struct: Struct, place: Any, value: Any) -> None:
    for field in struct.fields:
        part = getattr(value, field.name, None)
        if part is None:
            part = _length_of_counted(field, value)
        _write_field(field, place, part)


def _length_of_counted(field: Variable, value: Any) -> int:
    """Return the length of the field that ``x_count`` or ``x_size`` counts, else 0."""
    name = field.name.removesuffix("_count").removesuffix("_size")
    counted = getattr(value, name, None) if name != field.name else None
    return 0 if counted is None else len(counted)


def _write_field(field: Variable, place: Any, value: Any) -> None:
    structs = description().structs
    target = getattr(place, field.name)
    if field.type == "char" and "][" in field.length:
        rows = list(value or ())
        for index, row in enumerate(target):
            _write_bytes(row, _text(rows[index], len(row)) if index < len(rows) else b"")
    elif field.type == "char":
        _write_bytes(target, value if isinstance(value, bytes) else _text(value, len(target)))
    elif field.type in structs and isinstance(value, str):
        _write_bytes(target, UUID(value).bytes)
    elif field.type in structs:
        _write_fields(structs[field.type], target, value)
    elif field.length:
        numbers = [*(value or ()), *[0] * len(target)]
        for index in range(len(target)):
            target[index] = number(field, numbers[index])
    else:
        setattr(place, field.name, number(field, value))


def _text(text: str | int, room: int) -> bytes:
    """Return a string in UTF-8, cut to leave room for its NUL; a missing one (0) is empty."""
    return text.encode()[: room - 1] if isinstance(text, str) else b""


def _write_bytes(target: Any, raw: bytes) -> None:
    size = ffi.sizeof(target)
    ffi.memmove(ffi.addressof(target), raw[:size].ljust(size, b"\0"), size)


def number(variable: Variable, value: Any) -> Any:
    """Return a number as C's type has it: wrapped, as dynamic dims (-1) are all ones."""
    kind = type_of(variable)
    return float(value) if kind in ("float", "double") else wrapped(kind, int(value))
