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

_SHARED = """
typedef struct {
    uint32_t turn;
    uint32_t request;
    uint32_t thread;
    uint32_t result;
    uint64_t words[24];
} channel_t;
typedef struct {
    char key[32];
    uintptr_t tables;
    uint32_t host, driver, spinning, ended;
    channel_t ready;
    channel_t channels[4096];
} shared_t;
void npu_driver_give_turn(channel_t *);
void npu_driver_await_turn(shared_t *, channel_t *);
void npu_driver_take_turns(shared_t *, channel_t *);
"""
"""The memory that both processes map, and functions on it, as in ``channel.c``."""

_SYSTEM = """
struct iovec { void *base; size_t size; };
ssize_t process_vm_readv(int, const struct iovec *, unsigned long,
                         const struct iovec *, unsigned long, unsigned long);
ssize_t process_vm_writev(int, const struct iovec *, unsigned long,
                          const struct iovec *, unsigned long, unsigned long);
typedef struct { uint32_t stype; uintptr_t pNext; } link_t;
"""
"""Functions of the system, and what all structures of a chain begin with."""


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
    names = ["uintptr_t", "shared_t", *dict.fromkeys(INTEGERS.values()), *description().structs]
    fields = "".join(f"{name} *{name}_;" for name in names)
    return f"typedef struct {{ {fields} }} all_pointers_t;"


ffi = cffi.FFI()
ffi.cdef(_SHARED + _SYSTEM + "\n".join(_declarations()) + _pointers())

POINTER_TYPES: dict[str, Any] = {
    field.type.item.cname: field.type for _, field in ffi.typeof("all_pointers_t").fields
}
"""Pointers by the names of C's types."""


def at(kind: str, address: int) -> Any:
    """Return a pointer to a type, by its name in C."""
    return ffi.cast(POINTER_TYPES[kind], address)


def wrapped(kind: str, value: int) -> int:
    """Return a number as a type of C has it, without the bits that do not fit."""
    return int(ffi.cast(POINTER_TYPES[kind].item, value))


def address_of(pointer: Any) -> int:
    """Return the address of a pointer as a number."""
    return int(ffi.cast(POINTER_TYPES["uintptr_t"].item, pointer))
