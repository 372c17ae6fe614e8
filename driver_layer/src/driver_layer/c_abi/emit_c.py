"""The C source of the library: exported functions and function tables, from the description.

Source: docs/reference/level_zero.md#loaders-and-function-tables.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from driver_layer.c_abi.description.language import FILES, Function, Table, Variable, description


@cache
def key() -> str:
    """Return a digest of what both sides are made of, by which they know each other."""
    digest = hashlib.sha256(_written().encode())
    folder = files("driver_layer.c_abi.description")
    for name in FILES:
        digest.update((folder / f"{name}.abi").read_bytes())
    return digest.hexdigest()[:16]


def source(python: str, start: str) -> str:
    """Return the C source.

    Args:
        python: path of the Python program that runs the driver.
        start: the driver's code, with the library's path as its argument.
    """
    constants = {"KEY": key(), "PYTHON": python, "START": start}
    parts = [f"#define {name} {c_string(text)}" for name, text in constants.items()]
    parts.append(_written())
    parts += [_record(name) for name in sorted(_passed_by_value())]
    numbers = {id(function): n for n, (_, function) in enumerate(description().functions())}
    for table in description().tables:
        for function in table.functions:
            number = numbers.get(id(function))
            parts.append(
                _missing(table, function) if number is None else _c(table, function, number)
            )
        parts.append(_table(table))
    names = ", ".join(_prefix(table) for table in description().tables if not table.api)
    parts.append(f"const void *const *const tables[] = {{{names}}};\n")
    return "\n".join(parts)


def _written() -> str:
    """Return the part of the source that is written by hand."""
    folder = files(__package__ or "")
    return "".join((folder / f"{name}.c").read_text() for name in ("channel", "process", "front"))


def c_string(text: str) -> str:
    """Return a C string literal for any text, in UTF-8."""
    return '"' + "".join(_character(byte) for byte in text.encode()) + '"'


def _character(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"


def c_type(variable: Variable) -> str:
    """Return the C type of a parameter that is passed by value, or of a field."""
    is_struct = variable.type in description().structs
    return f"struct {variable.type}" if is_struct else variable.c_type("void *")


def _passed_by_value() -> set[str]:
    return {
        parameter.type
        for _, function in description().functions()
        for parameter in function.parameters or ()
        if not parameter.way and parameter.type in description().structs
    }


def _record(name: str) -> str:
    """Declare a structure that is passed by value: an array of characters, as IPC handles are."""
    (field,) = description().structs[name].fields
    return f"struct {name} {{ {c_type(field)} {field.name}[{field.length}]; }};"


def _prefix(table: Table) -> str:
    if table.api:
        return f"{table.api}_{table.name}"
    return table.name.removesuffix("_dditable_ext_t")


def _name(table: Table, function: Function) -> str:
    return function.name if table.api else f"{_prefix(table)}_{function.name}"


def _missing(table: Table, function: Function) -> str:
    linkage = "EXPORT" if table.api else "static"
    return f"{linkage} uint32_t {_name(table, function)}(void) {{ return unsupported(); }}"


def _c(table: Table, function: Function, number: int) -> str:
    declared, passed = list[str](), list[str]()
    parameters = function.parameters or ()
    for parameter in parameters:
        kind = "void *" if parameter.way else c_type(parameter)
        declared.append(f"{kind} {parameter.name}".replace("* ", "*"))
        by_value = not parameter.way and parameter.type in description().structs
        reference = f"&{parameter.name}" if by_value else parameter.name
        address = by_value or kind == "void *"
        passed.append(f"(uint64_t)(uintptr_t){reference}" if address else f"(uint64_t){reference}")
    linkage = "EXPORT" if table.api else "static"
    releases = int(any(parameter.way == "release" for parameter in parameters))
    return (
        f"{linkage} uint32_t {_name(table, function)}({', '.join(declared) or 'void'}) {{\n"
        f"    const uint64_t arguments[] = {{{', '.join(passed) or '0'}}};\n"
        f"    return call({number}, arguments, {len(passed)}, {releases});\n"
        "}"
    )


def _table(table: Table) -> str:
    if not table.api:
        entries = ", ".join(f"(const void *){_name(table, each)}" for each in table.functions)
        return f"static const void *const {_prefix(table)}[] = {{{entries}}};\n"
    entries = ", ".join(
        f"{{VERSION({each.since[0]}, {each.since[1]}), (const void *){each.name}}}"
        for each in table.functions
    )
    getter = f"{table.api}Get{table.name}ProcAddrTable"
    return (
        f"static const struct entry {_prefix(table)}[] = {{{entries}}};\n"
        f"EXPORT uint32_t {getter}(uint32_t version, const void **table) {{\n"
        f"    return fill({_prefix(table)}, COUNT({_prefix(table)}), version, table);\n"
        "}\n"
    )
