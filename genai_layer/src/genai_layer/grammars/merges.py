"""Bounds of merged schemas: those that apply to the same value, by allOf, $ref, anyOf or oneOf.

llguidance counts the steps of its work, and stops after too many of them, but does not bound a
single step: one step of merged patterns takes the product of their branches. Nor does it count the
copies of merged schemas, the pairs of patternProperties, the pairs of properties of which one is
required, and the remainders of multipleOf. So these are bounded before llguidance runs.

Source: llguidance, parser/src/json/schema.rs, shared_context.rs and compiler.rs; derivre,
src/relevance.rs; measured, tests/genai/grammars/test_bombs.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, cast
from urllib.parse import unquote

from genai_layer.errors import ConfigError
from genai_layer.grammars.references import at_pointer, extended

Schema = dict[str, Any]

_MOST_BRANCHES = 1 << 12
"""Product of the branches of the patterns of one text, about 0.3 s and 60 MB at worst."""
_MOST_COPIED = 1 << 21
"""Characters of schemas, counted for each copy; about 1 s and 100 MB at worst."""
_STEP = 16
"""Characters that count for a schema of a place."""
_PAIR = 100
"""Characters that count for a pair of properties of which one is required."""

_MERGED = (
    "too many schemas apply together by allOf, anyOf, oneOf or $ref, e.g. one that refers to "
    "itself; leave some out"
)
_PATTERNED = "too many patternProperties apply together; leave some out"
_ONE_OF_MANY = "minProperties counts too many properties; name the required ones"
_REMAINDERS = "multipleOf has too many remainders; send a smaller one"

_OPTIONS = ("anyOf", "oneOf")
_JOINED = {"$ref", "allOf", *_OPTIONS}
_BARE = _JOINED | {"title", "description", "default", "$defs", "definitions", "x-guidance"}
"""Keywords that say nothing themselves about a value."""


def check_merges(root: Schema) -> None:
    """Reject a schema with merges that would take too long, or too much memory.

    Args:
        root: schema in llguidance's dialect.

    Raises:
        ConfigError: the patterns of a text have too many branches, or schemas are merged too often.
    """
    walk, seen = _Walk(root), set[frozenset[int]]()
    pending = [("", [root])]
    while pending:
        place, schemas = pending.pop()
        same = frozenset(map(id, schemas))
        if same not in seen:
            seen.add(same)
            for merged in walk.merged(place, schemas):
                _check_branches(place, {one["pattern"] for one in merged if _has_pattern(one)})
                walk.count_multiples(place, merged)
                pending += walk.parts(place, merged)


class _Walk:
    """Places of a schema, within the bound of what merging may copy."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = _MOST_COPIED
        self._sizes = dict[int, int]()
        self._remainders = set[int]()

    def merged(self, place: str, schemas: Sequence[Schema]) -> Iterator[list[Schema]]:
        """Yield the schemas that apply together, for each choice of options.

        Args:
            place: JSON pointer to them.
            schemas: schemas of the place, without those that they refer to.
        """
        choices: list[tuple[list[Schema], list[Schema], list[list[Schema]]]]
        choices = [([*schemas], [], [])]
        while choices:
            pending, found, left = choices.pop()
            while pending:
                schema = pending.pop()
                self._count(place, _STEP)
                found.append(schema)
                pending += [*_schemas(schema.get("allOf")), *self._referred(schema)]
                left += [_schemas(schema[name]) for name in _OPTIONS if name in schema]
            if left:
                *rest, options = left
                self._count(place, len(options) * (len(found) + len(rest)))
                choices += [([option], [*found], [*rest]) for option in reversed(options)]
            else:
                own = [schema for schema in found if schema.keys() - _BARE]
                self._count(place, sum(map(self._size, own)) if len(own) > 1 else 0)
                yield own

    def parts(self, place: str, merged: list[Schema]) -> Iterator[tuple[str, list[Schema]]]:
        """Yield the places within a value, and the schemas that apply there."""
        names, keys = (
            {key: None for one in merged for key in _named(one, keyword)}
            for keyword in ("properties", "patternProperties")
        )
        pairs = _STEP * len(merged) * (len(names) + 1) * (len(keys) + 1)
        self._count(place, pairs, _PATTERNED if keys else _MERGED)
        self._count_pairs(place, merged, len(names), [*keys])
        for name in (*names, None):
            for key in (*keys, None):
                inner = [value for one in merged for value in _value(one, name, key)]
                yield _place(place, name, key), _schemas(inner)
        longest = max((len(_first(one)) for one in merged), default=0)
        self._count(place, _STEP * len(merged) * longest)
        for index in range(longest + 1):
            inner = [_item(one, index) for one in merged]
            yield _item_place(place, merged, index), _schemas(inner)

    def count_multiples(self, place: str, merged: list[Schema]) -> None:
        """Count the remainders of the multiples that a number has to be, which are states."""
        remainders = _remainders([one["multipleOf"] for one in merged if _has_multiple(one)])
        self._count(place, _STEP * remainders * (remainders not in self._remainders), _REMAINDERS)
        self._remainders.add(remainders)

    def _count_pairs(self, place: str, merged: list[Schema], names: int, keys: list[str]) -> None:
        """Count the pairs of properties, and those of patternProperties, for each merge."""
        several = sum("patternProperties" in one for one in merged)
        self._count(place, several * math.comb(len(keys), 2) * sum(map(len, keys)), _PATTERNED)
        _check_branches(place, {*sorted(keys, key=_branches)[-2:]})
        counted = {
            name for one in merged for name in ("minProperties", "maxProperties") if one.get(name)
        }
        self._count(place, _PAIR * names**2 * (counted == {"minProperties"}), _ONE_OF_MANY)

    def _count(self, place: str, characters: int, what: str = _MERGED) -> None:
        self._left -= characters
        if self._left < 0:
            raise ConfigError(f"json_schema: {place or 'the root'}: {what}")

    def _size(self, schema: Schema) -> int:
        if id(schema) not in self._sizes:
            own = {name: value for name, value in schema.items() if name not in _JOINED}
            self._sizes[id(schema)] = len(json.dumps(own))
        return self._sizes[id(schema)]

    def _referred(self, schema: Schema) -> list[Schema]:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return []
        return _schemas([at_pointer(self._root, unquote(reference).removeprefix("#"))])


def _check_branches(place: str, patterns: set[str]) -> None:
    if len(patterns) > 1 and math.prod(map(_branches, patterns)) > _MOST_BRANCHES:
        raise ConfigError(
            f"json_schema: {place or 'the root'}: {len(patterns)} patterns or formats that apply "
            "to the same text are too complex together; join them, or leave some out"
        )


_CLASS = re.compile(r"(\[\^?\]?(?:\\.|[^\]\\])*\]|\\[dDwWsS]|\\[pP](?:\{[^}]*\}|.)|\.)|\\.")
_FLAGS = re.compile(r"\(\?[a-zA-Z-]")
_ANCHORED = re.compile(r"\^[^*?{|]((?!\|).)*", re.DOTALL)


def _branches(pattern: str) -> int:
    """Return the most ways in which one character continues a text of a pattern.

    These are the different classes of characters, the character itself, and, in a pattern that may
    begin anywhere, a later begin. Flags make two of a class, and a class within another is not
    compared with others.
    """
    classes = [found[1] for found in _CLASS.finditer(pattern) if found[1]]
    nested = sum("[" in found[1:] for found in classes)
    ways = len({*classes}) + nested + 1 + (not _ANCHORED.fullmatch(pattern))
    return ways * (2 if _FLAGS.search(pattern) else 1)


def _has_pattern(schema: Schema) -> bool:
    return isinstance(schema.get("pattern"), str)


def _has_multiple(schema: Schema) -> bool:
    value: Any = schema.get("multipleOf")
    return isinstance(value, int | float) and 0 < abs(value) < 1e300


def _remainders(multiples: list[float]) -> int:
    """Return the number of remainders of a decimal number by the least common multiple.

    llguidance computes the product with 32 bits.
    """
    parts = [Fraction(repr(abs(value))) for value in multiples]
    scale = max((10 ** _decimals(part) for part in parts), default=1)
    whole = [int(part * scale) for part in parts]
    if len(whole) > 1 and math.prod(whole) >= 1 << 32:
        return _MOST_COPIED
    found = math.lcm(*whole)
    while found % 10 == 0:
        found //= 10
    return found


def _decimals(value: Fraction) -> int:
    """Return the digits after the point of a number that ends."""
    return next(digits for digits in range(400) if (value * 10**digits).denominator == 1)


def _schemas(values: Any) -> list[Schema]:
    """Return the schemas of a list that are objects."""
    parts = cast(list[Any], values) if isinstance(values, list) else []
    return [cast(Schema, one) for one in parts if isinstance(one, dict)]


def _named(schema: Schema, keyword: str) -> Schema:
    value = schema.get(keyword)
    return cast(Schema, value) if isinstance(value, dict) else {}


def _place(outer: str, name: str | None, key: str | None) -> str:
    """Return the place of a property; without name and key, of those that have neither."""
    if name is not None:
        return extended(extended(outer, "properties"), name)
    if key is not None:
        return extended(extended(outer, "patternProperties"), key)
    return extended(outer, "additionalProperties")


def _value(schema: Schema, name: str | None, key: str | None) -> list[Any]:
    """Return the schemas of a property whose name matches the key of patternProperties."""
    named = (_named(schema, "properties"), name), (_named(schema, "patternProperties"), key)
    found = [values[one] for values, one in named if one in values]
    return found or [schema.get("additionalProperties")]


def _item_place(outer: str, merged: list[Schema], index: int) -> str:
    """Return the place of an item, in the first schema that has one of its own for it."""
    for schema in merged:
        for keyword in ("prefixItems", "items"):
            items = schema.get(keyword)
            if isinstance(items, list) and index < len(cast(list[Any], items)):
                return extended(extended(outer, keyword), index)
    return extended(outer, "items")


def _first(schema: Schema) -> list[Any]:
    """Return the schemas of the first items."""
    lists: list[Any] = [schema.get("prefixItems"), schema.get("items")]
    found = [cast(list[Any], one) for one in lists if isinstance(one, list)]
    return found[0] if found else []


def _item(schema: Schema, index: int) -> Any:
    """Return the schema of an item."""
    first = _first(schema)
    rest = schema.get("additionalItems" if isinstance(schema.get("items"), list) else "items")
    return first[index] if index < len(first) else rest
