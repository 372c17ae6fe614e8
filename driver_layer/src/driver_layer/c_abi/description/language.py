"""The language of the ``.abi`` files, which describe functions and structures of C.

A file has blocks; a block is a line at the margin and its lines, indented or numbered::

    table ze Mem                              a function table of the specification
    table ze_graph_dditable_ext_t NAME        the function table of an extension
    1.0 zeMemFree(ze_context_handle_t hContext, pointer ptr)
    1.3 zeMemFreeExt                          a function that this driver lacks

    struct ze_fence_desc_t 0x12               a structure that begins with stype and pNext
    struct ze_x_t 0x1 next ze_y_t, ze_z_t     the structures that pNext may lead to
    record ze_copy_region_t                   any other structure
        u32 width

The number before a function is the version of the interface that added it. Forms of a parameter:

============================ =======================================================================
``u32 x``                    a number, or an enumeration or flags by their names
``ze_event_handle_t x``      a handle; ``ze_event_handle_t? x`` may be null
``pointer x``                an address of memory; ``pointer?`` may be null
``release T x``              a handle or an address that the function ends
``in T x``, ``in? T x``      a structure that the function reads; the second may be null
``raw T x``                  one that an adapter reads or writes by itself
``in T x[n]``                ``n`` of them, where ``n`` is another parameter
``in text x``                a string that ends with NUL
``in bytes x[n]``            ``n`` bytes
``in pages x[n]``            ``n`` bytes that stay where they are
``out T x``, ``out? T x``    a result
``count u32 n``              length of the results ``out T x[n]``, ``out text x[n]`` or ``out bytes
                             x[n]``: capacity on entry, number on return
``out view x[n]``            address of bytes that the driver owns; ``n`` is a result as well
``out string x``             address of a string that the driver owns
``out table x``              address of an extension's function table
============================ =======================================================================

Fields have the forms ``u32 x``, ``char x[256]``, ``pointer x``, ``in text x``, ``in bytes x[n]``,
``in pages x[n]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FILES = ("core", "core_types", "graph", "extensions", "sysman", "metrics", "lacking")

INTEGERS = {
    "bool": "uint8_t",
    "char": "char",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
    "size_t": "size_t",
}
"""Numbers of the language, and their types in C; enumerations and flags are ``uint32_t``."""

POINTERS = ("pointer", "text", "bytes", "pages", "view", "string", "table")


@dataclass(frozen=True, slots=True)
class Variable:
    """A parameter or a field.

    ``way`` is the first word of a form, "in" to "raw", or empty. ``length`` is the name of another
    parameter or field, or the text of the dimensions of a field.
    """

    way: str
    type: str
    name: str
    optional: bool
    length: str

    @property
    def is_handle(self) -> bool:
        """True if the type is a handle's; the handles of IPC are records."""
        return self.type.endswith("_handle_t") and not self.type.startswith("ze_ipc_")

    def c_type(self, address: str) -> str:
        """Return C's type, which is no structure; ``address`` is that of handles and pointers."""
        is_address = self.is_handle or self.type in POINTERS
        return address if is_address else INTEGERS.get(self.type, "uint32_t")


@dataclass(frozen=True, slots=True)
class Function:
    """A function; ``parameters`` is None if this driver lacks it."""

    name: str
    since: tuple[int, int]
    parameters: tuple[Variable, ...] | None


@dataclass(frozen=True, slots=True)
class Table:
    """A function table in the order of its fields.

    ``api`` is "ze", "zes" or "zet", and empty for the table of an extension, whose ``name`` is then
    that of the type.
    """

    api: str
    name: str
    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure; ``stype`` is None if it does not begin with stype and pNext."""

    name: str
    stype: int | None
    successors: tuple[str, ...]
    fields: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """All tables and structures, by their order in the files."""

    tables: tuple[Table, ...]
    structs: dict[str, Struct]

    def functions(self) -> Iterator[tuple[Table, Function]]:
        """Iterate over the functions that this driver has."""
        for table in self.tables:
            for function in table.functions:
                if function.parameters is not None:
                    yield table, function


@cache
def description() -> Description:
    """Return the content of the ``.abi`` files."""
    tables: list[Table] = []
    structs: dict[str, Struct] = {}
    folder = files(__package__ or "")
    for name in FILES:
        for head, lines in _blocks((folder / f"{name}.abi").read_text()):
            if head.startswith("table "):
                tables.append(_table(head, lines))
            else:
                struct = _struct(head, lines)
                structs[struct.name] = struct
    return Description(tuple(tables), structs)


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    head, lines = "", list[str]()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if re.match(r"table |struct |record ", line):
            if head:
                yield head, lines
            head, lines = line, []
        elif lines and lines[-1].count("(") > lines[-1].count(")"):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    yield head, lines


def _table(head: str, lines: list[str]) -> Table:
    first, second = head.split()[1:]
    api, name = ("", first) if first.endswith("_t") else (first, second)
    return Table(api, name, tuple(_function(line) for line in lines))


def _function(line: str) -> Function:
    since, _, rest = line.partition(" ")
    major, _, minor = since.partition(".")
    name, opened, inner = rest.strip().partition("(")
    parameters = None
    if opened:
        texts = [text.strip() for text in inner.rstrip(")").split(",")]
        parameters = tuple(_variable(text) for text in texts if text)
    return Function(name, (int(major), int(minor)), parameters)


def _struct(head: str, lines: list[str]) -> Struct:
    kind, name, *rest = head.replace(",", " ").split()
    stype = int(rest[0], 16) if kind == "struct" else None
    return Struct(name, stype, tuple(rest[2:]), tuple(_variable(line) for line in lines))


_VARIABLE = re.compile(
    r"(?:(?P<way>in|out|count|release|raw)(?P<opt>\?)? )?"
    r"(?P<type>\w+)(?P<null>\?)? (?P<name>\w+)(?P<len>\[.*\])?"
)


def _variable(text: str) -> Variable:
    found = _VARIABLE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r}: not a parameter or field of the language")
    return Variable(
        found["way"] or "",
        found["type"],
        found["name"],
        bool(found["opt"] or found["null"]),
        (found["len"] or "")[1:-1],
    )
