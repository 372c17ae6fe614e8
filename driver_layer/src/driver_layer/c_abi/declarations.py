"""Structures of the interface in memory, by cffi."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cffi

from driver_layer.c_abi.description.language import (
    INTEGERS,
    POINTERS,
    Struct,
    Variable,
    description,
)

_FRONT = """
typedef uint32_t (*dispatch_t)(uint32_t, const uint64_t *);
typedef struct {
    dispatch_t dispatch;
    const uintptr_t *tables;
    uintptr_t key;
    uint32_t ended;
    uint32_t active;
} front_t;
"""
"""The state of the C side, as ``front.c`` declares it."""


def _declarations() -> Iterator[str]:
    structs = description().structs
    done: set[str] = set()

    def declare(struct: Struct) -> Iterator[str]:
        if struct.name in done:
            return
        done.add(struct.name)
        for field in struct.fields:
            if field.type in structs:
                yield from declare(structs[field.type])
        head = [] if struct.stype is None else ["uint32_t stype", "uintptr_t pNext"]
        fields = "; ".join([*head, *map(_field, struct.fields)])
        yield f"typedef struct {{ {fields}; }} {struct.name};"

    for struct in structs.values():
        yield from declare(struct)


def _field(field: Variable) -> str:
    is_array = field.length and field.type not in POINTERS
    return f"{type_of(field)} {field.name}" + (f"[{field.length}]" if is_array else "")


def type_of(variable: Variable) -> str:
    """Return C's type of a field, or of the item that a parameter points to; addresses are numbers.

    An array of a field has this type of items.
    """
    return variable.type if variable.type in description().structs else variable.c_type("uintptr_t")


def _pointers() -> str:
    """Declare a structure of pointers to all types, as cffi parses every name that it is given."""
    names = ["uintptr_t", "front_t", *dict.fromkeys(INTEGERS.values()), *description().structs]
    fields = "".join(f"{name} *{name}_;" for name in names)
    return f"typedef struct {{ {fields} }} all_pointers_t;"


ffi = cffi.FFI()
ffi.cdef(_FRONT + "\n".join(_declarations()) + _pointers())

POINTER_TYPES: dict[str, Any] = {
    field.type.item.cname: field.type for _, field in ffi.typeof("all_pointers_t").fields
}
"""Pointers by the names of C's types."""


def at(kind: str, address: int) -> Any:
    """Return a pointer to a type, by its name in C."""
    return ffi.cast(POINTER_TYPES[kind], address)


def numbers_at(kind: str, address: Any, count: int) -> list[int]:
    """Return the numbers of an array, by the name of their type in C."""
    found: Any = ffi.unpack(ffi.cast(POINTER_TYPES[kind], address), count) if count else []
    return found


def wrapped(kind: str, value: int) -> int:
    """Return a number as a type of C has it, without the bits that do not fit."""
    return int(ffi.cast(POINTER_TYPES[kind].item, value))


def address_of(pointer: Any) -> int:
    """Return the address of a pointer as a number."""
    return int(ffi.cast(POINTER_TYPES["uintptr_t"].item, pointer))
