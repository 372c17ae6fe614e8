"""References of a JSON schema, written as JSON pointers from its root.

llguidance resolves references of all forms, but loses the address of a schema ($id) behind a
reference into it, and then takes another definition of the same name. So the forms end here.

Source: JSON Schema 2020-12, sections 8.2 and 9.2; measured against jsonschema_rs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, unquote, urljoin

from genai_layer.errors import ConfigError

_NAMED = (
    *("properties", "patternProperties", "$defs", "definitions"),
    *("dependencies", "dependentSchemas"),
)
"""Keywords with schemas by name."""

_INNER = (
    *("items", "additionalItems", "prefixItems", "unevaluatedItems", "contains"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
)
"""Keywords with a schema or a list of schemas; values of all others are data."""

_HOME = "http://schema/"
"""Address of a root schema without one."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Schema, its pointer from the root, and the address that its references are relative to."""

    schema: dict[str, Any]
    pointer: str
    base: str


def with_pointers(root: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write the references of a schema as pointers from its root, without addresses and anchors.

    Returns:
        a copy of the schema, and all schemas in it, itself among them.

    Raises:
        ConfigError: a reference leads to no place of the schema.
    """
    found = deepcopy(root)
    key = "id" if "draft-04" in str(root.get("$schema")) else "$id"
    places: dict[int, _Place] = {}
    targets = {_HOME: ""}
    pending = _by_identity(_places(found, "", _HOME, key))
    while pending:
        places |= pending
        targets |= {name: one.pointer for one in pending.values() for name in _names(one, key)}
        ends = _by_identity(
            end for one in pending.values() for end in _resolved(one, found, targets)
        )
        # A reference makes a schema of data, e.g. of /components/schemas/A.
        pending = _by_identity(
            inner
            for number, end in ends.items()
            if number not in places
            for inner in _places(end.schema, end.pointer, end.base, key)
            if id(inner.schema) not in places
        )
    for one in places.values():
        for name in (key, "$anchor"):
            one.schema.pop(name, None)
    return found, [one.schema for one in places.values()]


def _by_identity(places: Iterable[_Place]) -> dict[int, _Place]:
    return {id(one.schema): one for one in places}


def _resolved(one: _Place, root: dict[str, Any], targets: dict[str, str]) -> Iterator[_Place]:
    """Write a schema's reference, if it has one, as a pointer from the root; yield its end.

    Raises:
        ConfigError: the reference leads to no place of the schema.
    """
    reference = one.schema.get("$ref")
    if isinstance(reference, str):
        pointer = _pointer(root, reference, one.base, targets)
        one.schema["$ref"] = f"#{quote(pointer, '/$')}"
        address = _joined(one.base, reference).partition("#")[0]
        yield _Place(at_pointer(root, pointer), pointer, address)


def at_pointer(root: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer; None without one."""
    found = root
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal():
            items = cast(list[Any], found)
            found = items[int(name)] if int(name) < len(items) else None
        else:
            found = cast(dict[str, Any], found).get(name) if isinstance(found, dict) else None
    return found


def extended(pointer: str, name: str | int) -> str:
    """Return the pointer to an entry."""
    return f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}"


def _places(value: Any, pointer: str, base: str, key: str) -> Iterator[_Place]:
    """Yield a schema and the schemas within.

    Args:
        value: a schema, or schemas in a list.
        pointer: its place.
        base: address of the schema around it.
        key: keyword of addresses.
    """
    if isinstance(value, list):
        for number, one in enumerate(cast(list[Any], value)):
            yield from _places(one, extended(pointer, number), base, key)
    if not isinstance(value, dict):
        return
    schema = cast(dict[str, Any], value)
    base = _joined(base, _address(schema, key)).partition("#")[0]
    yield _Place(schema, pointer, base)
    for name, inner in schema.items():
        place = extended(pointer, name)
        if name in _NAMED and isinstance(inner, dict):
            for entry, one in cast(dict[str, Any], inner).items():
                yield from _places(one, extended(place, entry), base, key)
        elif name in _INNER:
            yield from _places(inner, place, base, key)


def _joined(base: str, reference: str) -> str:
    """Return the address that a reference has at a base.

    Raises:
        ConfigError: the reference is no address.
    """
    if reference.startswith("#"):  # urljoin drops a base whose scheme has no paths, e.g. urn
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError as error:
        raise ConfigError(f"json_schema: {reference} is no address: {error}; correct it") from None


def _address(schema: dict[str, Any], key: str) -> str:
    """Return the address of a schema; "#name" is an anchor in older drafts, "" is no address."""
    address = schema.get(key)
    return address if isinstance(address, str) else ""


def _names(one: _Place, key: str) -> Iterator[str]:
    """Yield the addresses that lead to a schema."""
    address, anchor = _address(one.schema, key), one.schema.get("$anchor")
    if isinstance(anchor, str):
        yield f"{one.base}#{anchor}"
    if address:
        yield one.base + address if address.startswith("#") else one.base


def _pointer(root: Any, reference: str, base: str, targets: dict[str, str]) -> str:
    """Return the pointer from the root to the schema that a reference names.

    Raises:
        ConfigError: it names none.
    """
    absolute = _joined(base, reference)
    address, _, fragment = absolute.partition("#")
    if fragment and not fragment.startswith("/"):
        found = targets.get(absolute)
    else:
        begin = targets.get(address)
        found = None if begin is None else begin + unquote(fragment)
    if found is None or at_pointer(root, found) is None:
        raise ConfigError(
            f"json_schema: the reference {reference} leads to no place of the schema; define it "
            "there"
        )
    return found
