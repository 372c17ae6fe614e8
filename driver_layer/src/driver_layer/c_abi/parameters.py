"""Parameters of a function: conversions from C's numbers to Python, and of results back.

A call from C arrives as numbers in the order of the parameters: values, handles and addresses. The
functions of this module make the conversions of a parameter once, when its function is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from driver_layer.c_abi.declarations import POINTER_TYPES, ffi, type_of
from driver_layer.c_abi.description.language import Variable, description
from driver_layer.c_abi.handle_table import HANDLES
from driver_layer.c_abi.host import host
from driver_layer.c_abi.structures import number, number_reader, read, write
from driver_layer.ze import errors

Numbers = Sequence[int]
"""The numbers of a call, by parameter."""

_MOST_ITEMS = 1 << 16
"""Items of an array that a caller passes; a larger number is a number that was never set."""

TABLES: dict[str, int] = {}
"""Addresses in the loaded library: of the extensions' function tables by their types, and of the
functions that are found without a table by their names."""


def place_of(name: str, parameters: Sequence[Variable]) -> int:
    """Return the index of the parameter of a name."""
    return next(i for i, parameter in enumerate(parameters) if parameter.name == name)


def reader(parameter: Variable, parameters: Sequence[Variable]) -> Callable[[Numbers], Any]:
    """Return the conversion of a parameter that is no result.

    The conversion raises ZeError: INVALID_NULL_HANDLE, INVALID_ARGUMENT for an unknown handle,
    INVALID_NULL_POINTER, INVALID_ENUMERATION, or INVALID_SIZE for a length without its array.
    """
    place, name, kind = place_of(parameter.name, parameters), parameter.name, parameter.type
    if parameter.way == "in" and parameter.length:
        return _array_reader(parameter, parameters)
    if parameter.way == "in":
        convert = _pointed_to(parameter)
        return lambda numbers: convert(numbers[place])
    if parameter.way == "raw":
        return lambda numbers: errors.not_null(numbers[place], name)
    if parameter.is_handle:
        find = HANDLES.object_of if parameter.optional else HANDLES.required
        return lambda numbers: find(numbers[place], name)
    if kind in description().structs:  # passed by value: C's side passes its address
        return lambda numbers: read(kind, numbers[place])
    if kind == "pointer" and not parameter.optional:
        return lambda numbers: errors.not_null(numbers[place], name)
    to_number = number_reader(kind)
    return lambda numbers: to_number(numbers[place])


def _pointed_to(parameter: Variable) -> Callable[[int], Any]:
    name, kind, optional = parameter.name, parameter.type, parameter.optional

    def convert(address: int) -> Any:
        if optional and not address:
            return None
        errors.not_null(address, name)
        return host().text_at(address) if kind == "text" else read(kind, address)

    return convert


def _array_reader(
    parameter: Variable, parameters: Sequence[Variable]
) -> Callable[[Numbers], Sequence[Any]]:
    name = parameter.name
    place, length = place_of(name, parameters), place_of(parameter.length, parameters)
    if parameter.type == "bytes":
        return lambda numbers: host().bytes_at(numbers[place], numbers[length], name).tobytes()
    kind = type_of(parameter)
    find = HANDLES.object_of if parameter.is_handle else None

    def convert(numbers: Numbers) -> Sequence[Any]:
        if not numbers[length]:
            return ()
        if not numbers[place]:
            raise errors.invalid_size(f"{name} is null, but has {numbers[length]} items")
        if numbers[length] > _MOST_ITEMS:
            message = f"{name} has {numbers[length]} items; more than {_MOST_ITEMS} are an error"
            raise errors.invalid_size(message)
        items = host().numbers_at(kind, numbers[place], numbers[length])
        return items if find is None else [find(item, name) for item in items]

    return convert


def required_results(parameters: Sequence[Variable]) -> list[tuple[int, str]]:
    """Return index and name of each result whose address must not be null."""
    return [
        (index, parameter.name)
        for index, parameter in enumerate(parameters)
        if parameter.way == "count"
        or (parameter.way == "out" and not parameter.optional and not _may_be_asked_for(parameter))
    ]


def _may_be_asked_for(result: Variable) -> bool:
    """Return whether a null result is a question for its length."""
    return bool(result.length) and result.type != "view"


Writer = Callable[[Numbers, Any], None]
"""Write a result to where the numbers of a call say."""


def writer(parameter: Variable, parameters: Sequence[Variable]) -> Writer:
    """Return the conversion of a result."""
    place = place_of(parameter.name, parameters)
    if parameter.length:
        length = place_of(parameter.length, parameters)
        kind = type_of(parameters[length])
        give = _give_view(kind) if parameter.type == "view" else _give_many(parameter, kind)
        return lambda numbers, value: give(numbers[place], numbers[length], value)
    put = _item_writer(parameter)

    def write_one(numbers: Numbers, value: Any) -> None:
        if numbers[place]:
            put(numbers[place], value)

    return write_one


def _item_writer(parameter: Variable) -> Callable[[int, Any], None]:
    kind = parameter.type
    if kind in description().structs:
        return lambda address, value: write(kind, address, value)
    c_type = type_of(parameter)

    def put(address: int, value: Any) -> None:
        if parameter.is_handle:
            raw = HANDLES.handle_of(value) if value is not None else 0
        elif kind == "table":
            raw = TABLES[getattr(value, "__name__", type(value).__name__)]
        elif kind == "string":
            raw = host().keep_text(value)
        elif kind == "pointer":
            raw = value if isinstance(value, int) else value.address
        else:
            raw = number(parameter, value)
        host().put_number(c_type, address, raw)

    return put


def _give_view(kind: str) -> Callable[[int, int, Any], None]:
    """Return a function that gives the address of memory of the host, and its size."""

    def give(address: int, length: int, value: Any) -> None:
        host().put_number(kind, length, value.size)
        host().put_number("uintptr_t", address, value.address)

    return give


def _give_many(parameter: Variable, kind: str) -> Callable[[int, int, Any], None]:
    """Return a function that writes as much of a result as the caller has room for.

    A caller without room asks for the length.
    Source: docs/reference/level_zero.md#loaders-and-function-tables.
    """
    of_bytes = parameter.type in ("text", "bytes")
    size = 1 if of_bytes else ffi.sizeof(POINTER_TYPES[type_of(parameter)].item)
    put = None if of_bytes else _item_writer(parameter)

    def give(address: int, length: int, value: Any) -> None:
        if parameter.type == "text":
            value = value.encode() + b"\0"
        (room,) = host().numbers_at(kind, length, 1) if address else (0,)
        if not 0 < room <= len(value):
            host().put_number(kind, length, len(value))
        if put is None:
            if room:
                host().write(address, value[:room])
            return
        for index, item in enumerate(value[:room]):
            put(address + index * size, item)

    return give
