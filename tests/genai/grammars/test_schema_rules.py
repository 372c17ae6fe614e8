"""Keywords of JSON schemas that llguidance lacks, compared to jsonschema_rs."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.genai.grammars.sampling import accepts, matcher_of, sample

from genai_layer import ConfigError

ABC = {"enum": ["a", "b", "c"]}
WORD = {"type": "string"}
INTEGER = {"type": "integer"}


def arrays(*values: Any) -> list[Any]:
    return [[*each] for size in range(4) for each in product(values, repeat=size)]


def objects(*names: str) -> list[Any]:
    values = [{}, *({name: 1} for name in names), {names[0]: "x"}]
    return [*values, {names[0]: 1, names[1]: 2}]


EXACT: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "distinct words": (
        {"type": "array", "items": ABC, "uniqueItems": True},
        arrays("a", "b", "d", 1),
    ),
    "distinct, of a length": (
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 2},
        arrays(True, False, 1),
    ),
    "distinct, of a type": (
        {
            "type": "array",
            "items": {"type": "string", "enum": ["a", 1, "b"]},
            "uniqueItems": True,
            "maxItems": 2,
        },
        arrays("a", "b", 1),
    ),
    "distinct, as JSON compares": (
        {"type": "array", "items": {"enum": [1, 1.0, True]}, "uniqueItems": True, "minItems": 2},
        [[1], [1, True], [True, 1], [1, 1], [1, True, 1]],
    ),
    "distinct, by a reference": (
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "uniqueItems": True, "$defs": {"A": ABC}},
        arrays("a", "b", "d"),
    ),
    "one at most": (
        {"type": "array", "items": INTEGER, "uniqueItems": True, "maxItems": 1},
        arrays(1, 2),
    ),
    "not distinct": ({"type": "array", "items": INTEGER, "uniqueItems": False}, arrays(1, 2)),
    "names of a list": (
        {"type": "object", "propertyNames": ABC, "additionalProperties": INTEGER},
        objects("a", "b", "d"),
    ),
    "names by a reference": (
        {"type": "object", "propertyNames": {"$ref": "#/$defs/A"}, "$defs": {"A": ABC}},
        objects("a", "c", "d"),
    ),
    "names of a pattern": (
        {
            "type": "object",
            "propertyNames": {"type": "string", "pattern": "^x+$"},
            "additionalProperties": INTEGER,
        },
        objects("x", "xx", "axx"),
    ),
    "names of a length": (
        {"type": "object", "propertyNames": {"minLength": 2, "maxLength": 3}},
        objects("ab", "abc", "é", "abcd"),
    ),
    "names of a format": (
        {"type": "object", "propertyNames": {"format": "ipv4"}},
        objects("1.2.3.4", "0.0.0.0", "1.2.3", "1.2.3.256"),
    ),
    "any names": (
        {"type": "object", "propertyNames": {"format": "path"}, "additionalProperties": INTEGER},
        objects("/a", "b"),
    ),
    "integral counts": ({"type": "string", "minLength": 1.0, "maxLength": 2.0}, ["", "a", "abc"]),
    "endless counts": (
        {"type": "array", "items": INTEGER, "maxItems": 1e300, "minItems": 1},
        arrays(1),
    ),
    "a format beside a pattern": (
        {"type": "string", "format": "ipv4", "pattern": "^1.*"},
        ["1.2.3.4", "2.2.3.4", "1"],
    ),
    "a searched pattern beside a format": (
        {"type": "string", "format": "ipv4", "pattern": "^10\\."},
        ["10.2.3.4", "110.2.3.4", "10."],
    ),
    "a searched pattern beside a format of any text": (
        {"type": "string", "format": "path", "pattern": "^a"},
        ["a", "abc", "ba"],
    ),
    "a searched pattern beside a length": (
        {"type": "string", "pattern": "^a", "minLength": 2},
        ["a", "ab", "bab"],
    ),
    "a searched pattern beside listed texts": (
        {"pattern": "b", "enum": ["abc", "b", "ac"]},
        ["abc", "b", "ac"],
    ),
    "two searched patterns": (
        {"type": "string", "pattern": "^a", "allOf": [{"pattern": "b"}, {"pattern": "c$"}]},
        ["abc", "ac", "abcd", "xbc"],
    ),
    "an exclusive bound near the other one": (
        {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
        [0, 0.25, 0.5, 1],
    ),
    "an exclusive bound above": (
        {"type": "number", "exclusiveMaximum": 0, "minimum": -0.5},
        [0, -0.0, -0.25, -0.5],
    ),
    "rounded bounds": (
        {"type": "integer", "maximum": 2**60 + 255, "minimum": -(2**60) - 255},
        [2**60 - 128, 2**60 + 512, -(2**60) + 128, -(2**60) - 512],
    ),
}


@pytest.mark.parametrize("kind", EXACT)
def test_a_rule_means_what_a_validator_reads(kind: str) -> None:
    schema, values = EXACT[kind]
    matcher = matcher_of(schema)
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    assert not matcher.is_error(), matcher.get_error()
    found = [value for value in values if accepts(matcher, json.dumps(value, ensure_ascii=False))]
    right = [value for value in values if validator.is_valid(value)]
    assert found == right
    assert right
    assert right != values or "any" in kind or "not" in kind


BOUNDS = st.sampled_from(
    [
        1e300,
        -1e300,
        10**300,
        -(10**300),
        2**63,
        -(2**63),
        2**53 + 1,
        1e18,
        -1e19,
        0,
        5,
        0.5,
        -0.5,
        1,
        1e-9,
    ]
)
NAMES = st.sampled_from(["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"])


@given(st.sampled_from(["integer", "number"]), st.dictionaries(NAMES, BOUNDS, max_size=2))
@settings(max_examples=40, deadline=None)
def test_numbers_lie_within_bounds_of_any_size(kind: str, bounds: dict[str, float]) -> None:
    schema = {"type": kind, **bounds}
    try:
        matcher = matcher_of(schema)
    except ConfigError:
        assume(False)
    if matcher.is_error():  # The bounds exclude each other.
        assert len(bounds) == 2
        assume(False)
    validator = jsonschema_rs.validator_for(schema)
    for seed in range(3):
        text = sample(matcher, seed)
        assert validator.is_valid(json.loads(text)), text


FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "duration"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_text_of_a_format_is_one_that_a_validator_accepts(name: str) -> None:
    schema = {"type": "string", "format": name}
    matcher = matcher_of(schema)
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    for seed in range(20):
        text = sample(matcher, seed)
        assert validator.is_valid(json.loads(text)), text


UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"type": "array", "items": WORD, "uniqueItems": True}, "uniqueItems"),
    ({"type": "array", "items": {"enum": [*range(6)]}, "uniqueItems": True}, "uniqueItems"),
    ({"items": ABC, "uniqueItems": True}, "uniqueItems"),
    ({"type": "object", "properties": {"a": {}}, "propertyNames": ABC}, "propertyNames"),
    ({"type": "object", "propertyNames": {"not": ABC}}, "propertyNames"),
    ({"type": "object", "propertyNames": False}, "propertyNames"),
    ({"type": "object", "propertyNames": INTEGER}, "propertyNames"),
    (
        {
            "properties": {
                "a": {"propertyNames": ABC, "additionalProperties": {"type": "null"}},
                "b": {"$ref": "#/properties/a/additionalProperties"},
            }
        },
        "propertyNames",
    ),
    ({"type": "string", "format": "regex"}, "regex"),
    ({"not": {}}, "not"),
]


@pytest.mark.parametrize(("schema", "name"), UNSUPPORTED, ids=str)
def test_what_no_rule_can_write_is_rejected_or_ignored(schema: Any, name: str) -> None:
    matcher = matcher_of(schema)
    assert matcher.is_error()
    assert name in matcher.get_error()
    lenient = matcher_of(schema, lenient=True)
    assert not lenient.is_error()
    assert name in " ".join(lenient.get_grammar_warnings())


TOO_MUCH = [{"minLength": 1e10}, {"minItems": 10**400}, {"minimum": 1e300}, {"maximum": -(10**99)}]


@pytest.mark.parametrize("schema", TOO_MUCH, ids=lambda schema: next(iter(schema)))
def test_a_bound_that_excludes_all_answers_is_named(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"json_schema: {next(iter(schema))} = "):
        matcher_of(schema)


NUMBERS = [
    ({"minimum": 10**20}, "minimum = 100000000000000000000: "),
    ({"minimum": 1.2345678901234567e300}, "minimum = 1.2345678901234567e+300: "),
    ({"minimum": 10**99}, "minimum = 100000000000000000...0000000000000000000: "),
    ({"minItems": 10**20}, "minItems = 100000000000000000000: "),
]


@pytest.mark.parametrize(("schema", "shown"), NUMBERS, ids=range(len(NUMBERS)))
def test_a_number_in_a_message_is_whole_or_shows_that_it_is_not(schema: Any, shown: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(shown)):
        matcher_of(schema)


KEYWORDS = st.sampled_from(
    [
        *("uniqueItems", "propertyNames", "format", "pattern", "items", "allOf", "enum", "const"),
        *(
            "minimum",
            "maximum",
            "exclusiveMaximum",
            "maxLength",
            "minItems",
            "maxItems",
            "additionalProperties",
            "type",
            "$ref",
        ),
        *("x-guidance", "required", "properties"),
    ]
)
JUNK = st.recursive(
    st.sampled_from(["#", "string", "array", "date", "", None, True, 1, -1, 2.5, 1e300, "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYWORDS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYWORDS, JUNK, max_size=5))
@settings(max_examples=60, deadline=None)
def test_a_keyword_with_any_value_makes_a_grammar_or_its_error(schema: dict[str, Any]) -> None:
    for lenient in (False, True):
        try:
            matcher_of(schema, lenient)
        except ConfigError:
            continue
