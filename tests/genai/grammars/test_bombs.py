"""Schemas that would take llguidance for ever: each ends, as a grammar or as an error."""

from __future__ import annotations

import json
import multiprocessing
import re
import resource
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from tests.genai.grammars.sampling import matcher_of

from genai_layer import ConfigError, StructuredOutputConfig
from genai_layer.grammars.compiler import grammar_of
from genai_layer.grammars.json_formats import PATTERNS

SECONDS, MEGABYTES = 5, 200


def text(*patterns: str, **keywords: Any) -> dict[str, Any]:
    return {"type": "string", "allOf": [{"pattern": one} for one in patterns], **keywords}


def keys(*patterns: str, value: Any = True) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {one: value for one in patterns}}


def doubled(times: int, end: Any) -> dict[str, Any]:
    """Return a schema that refers to its end 2 ** ``times`` times."""
    defs = {str(k): {"allOf": [{"$ref": f"#/$defs/{k + 1}"}] * 2} for k in range(times)}
    return {"$ref": "#/$defs/0", "$defs": {**defs, str(times): end}}


COUNTS = [f"a{{{count}}}" for count in range(2, 62)]
WIDE = [f"^(a|[ab]b|[ac]c){{{count},400}}$" for count in range(60)]
OVERLAPPING = [
    "^(?:" + "|".join(f"[a-{chr(98 + end)}]{end}{number}" for end in range(24)) + ")"
    for number in range(5)
]

PATTERNS_OF_ONE_TEXT: dict[str, Any] = {
    "allOf": text(*COUNTS),
    "beside a length": text(*COUNTS[:30], minLength=1, maxLength=9),
    "with a format": text(*COUNTS[:30], format="date-time"),
    "anchored, with overlapping classes": text(*WIDE),
    "few, with many classes": text(*OVERLAPPING),
    "an option begins anywhere": text(*(f"^x|{one}" for one in COUNTS)),
    "an anchor that may miss": text(*(f"^?{one}" for one in COUNTS)),
    "later in the text": text(*(f"^(z|x.*{one}b)" for one in COUNTS)),
    "with flags": text(*(f"^(?i)(a|[ab]b|[aB]c){{{k}}}" for k in range(60))),
    "classes in classes": text(*(f"^([[a-c]x]y|[[a-c]z]x|[[a-c]w]z){{{k}}}" for k in range(60))),
    "of a property": {
        "allOf": [{"type": "object", "properties": {"a": {"pattern": one}}} for one in COUNTS]
    },
    "of other properties": {
        "allOf": [
            {"type": "object", "additionalProperties": {"type": "string", "pattern": one}}
            for one in COUNTS
        ]
    },
    "of items": {
        "allOf": [{"type": "array", "items": {"type": "string", "pattern": one}} for one in COUNTS]
    },
    "of an item and the rest": {
        "allOf": [
            {"type": "array", "prefixItems": [{"type": "string", "pattern": one}]}
            if number % 2
            else {"type": "array", "items": {"type": "string", "pattern": one}}
            for number, one in enumerate(COUNTS)
        ]
    },
    "behind references": {
        "allOf": [{"$ref": f"#/$defs/{number}"} for number in range(60)],
        "$defs": {str(n): text(one) for n, one in enumerate(COUNTS)},
    },
    "in options": {
        "allOf": [{"anyOf": [text(one), {"type": "null"}]} for one in COUNTS[:12]]
        + [text(*COUNTS[12:])]
    },
    "of a property and of its pattern": {
        **keys("^a", value=text(*COUNTS[:30])),
        "properties": {"a": text(*COUNTS[30:])},
    },
    "of names": keys(
        *OVERLAPPING[:1],
        "^(?:" + "|".join(f"[b-z]{{{k}}}|[a-{chr(98 + k % 25)}{k}]" for k in range(400)) + ")",
    ),
}

COPIES: dict[str, Any] = {
    "the same reference twice": doubled(30, {"type": "string", "pattern": "a"}),
    "a property by the same reference twice": doubled(
        15, {"type": "object", "properties": {"a": {"type": "string", "pattern": "a"}}}
    ),
    "itself": {"$ref": "#"},
    "options of options": {
        "allOf": [
            {"anyOf": [{"type": "object", "properties": {f"{side}{k}": {}}} for side in "ab"]}
            for k in range(60)
        ]
    },
    "many lists of one option": {
        "allOf": [{"anyOf": [{"type": "string", "minLength": k}]} for k in range(2000)]
    },
    "a long text for each option": {
        "allOf": [
            {"const": "a" * 50_000},
            {"anyOf": [{"type": "string", "minLength": k} for k in range(2000)]},
        ]
    },
    "patternProperties": keys(*(f"^x{k}a{{{k}}}$" for k in range(400))),
    "patternProperties of merged objects": {
        "allOf": [keys(*(f"^{side}a{{{k}}}$" for k in range(20))) for side in range(20)]
    },
    "patternProperties of many objects": {
        "type": "object",
        "properties": {
            str(number): keys(*(f"^([ab]x|[ac]y){{30}}{k}$" for k in range(10)))
            for number in range(500)
        },
    },
    "a large multiple": {"type": "integer", "multipleOf": 7_699_307},
    "a product of multiples": {
        "type": "number",
        "allOf": [{"multipleOf": value} for value in (99991, 0.7, 11)],
    },
    "many multiples": {
        "type": "array",
        "prefixItems": [{"type": "integer", "multipleOf": 19993 + 2 * k} for k in range(30)],
    },
    "at least one property": {
        "type": "object",
        "properties": {f"p{k}": {} for k in range(1500)},
        "minProperties": 1,
    },
}


def ends(schema: Any) -> tuple[str, float, float]:
    """Compile a schema, and return its error, the seconds of the processor, and the megabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        matcher = matcher_of(schema)
        matcher.compute_bitmask()
        error = matcher.get_error()
    except ConfigError as refusal:
        error = str(refusal)
    after = resource.getrusage(resource.RUSAGE_SELF)
    grown = (after.ru_maxrss - before.ru_maxrss) / 1024
    return error, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, grown


def limit() -> None:
    """Let the kernel end a process that computes for ever, or takes all memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize(
    ("bombs", "message"),
    [
        (PATTERNS_OF_ONE_TEXT, "too complex together; "),
        (COPIES, r"apply together.*; leave|too many (remainders|properties); (send|name)"),
    ],
)
def test_a_bomb_is_rejected_within_seconds(bombs: dict[str, Any], message: str) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=limit) as processes:
        found = {name: processes.submit(ends, bomb).result() for name, bomb in bombs.items()}
    kept = {name: result for name, result in found.items() if not re.search(message, result[0])}
    assert kept == {}
    assert all(time < SECONDS and grown < MEGABYTES for _, time, grown in found.values())


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (text(*COUNTS), "the root"),
        ({"type": "object", "properties": {"a/b": text(*COUNTS)}}, "/properties/a~1b"),
        ({"type": "array", "prefixItems": [{}, text(*COUNTS)]}, "/prefixItems/1"),
        ({"type": "array", "items": text(*COUNTS)}, "/items"),
        ({"$ref": "#/$defs/a", "$defs": {"a": text(*COUNTS)}}, "the root"),
        ({"type": "object", "additionalProperties": text(*COUNTS)}, "/additionalProperties"),
        (keys("^x", value=text(*COUNTS)), "/patternProperties/^x"),
    ],
)
def test_the_part_of_a_schema_that_merges_too_much_is_named(schema: Any, place: str) -> None:
    with pytest.raises(ConfigError) as error:
        grammar_of(StructuredOutputConfig(json_schema=json.dumps(schema)))
    assert str(error.value).startswith(f"json_schema: {place}: 60 patterns")


PASSWORD = text("[a-z]", "[A-Z]", r"\d", "[^a-zA-Z0-9]", minLength=8, maxLength=64)
USUAL: dict[str, Any] = {
    "a password": PASSWORD,
    "a name of an image": text("^[a-z0-9]+(?:[._-][a-z0-9]+)*$", "^.{2,}/", maxLength=255),
    "maps with many patterns": keys(*(f"^x-{k}-" for k in range(40))),
    "a base and details": {
        "allOf": [
            {"$ref": "#/$defs/base"},
            {
                "properties": {
                    f"b{k}": {"type": "string", "pattern": f"^[a-z]{k}"} for k in range(90)
                }
            },
        ],
        "$defs": {
            "base": {
                "type": "object",
                "properties": {
                    f"a{k}": {"type": "string", "pattern": r"^\w+:\d+"} for k in range(90)
                },
            }
        },
    },
    "options that share properties": {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "anyOf": [
            {
                "properties": {
                    "kind": {"const": str(k)},
                    "id": {"type": "string", "pattern": f"^{k}[a-z]-\\d+"},
                }
            }
            for k in range(30)
        ],
    },
    "multiples": {
        "type": "object",
        "properties": {
            f"p{k}": {"type": "number", "multipleOf": value}
            for k, value in enumerate([1e-8, 0.01, 0.25, 7, 3600, 86400, 1e6, 10**9, *[65536] * 9])
        },
    },
    "at least one of many": {
        "type": "object",
        "properties": {f"p{k}": {"type": "integer"} for k in range(60)},
        "minProperties": 1,
    },
    **{
        f"{name} with a pattern and a length": text(r"^[\w.:/@+-]+$", format=name, minLength=1)
        for name in PATTERNS
    },
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_merges_are_not_bounded(name: str) -> None:
    assert "json_schema" not in grammar_error(USUAL[name])


def grammar_error(schema: Any) -> str:
    """Return the error of a schema's bounds, "" for none."""
    try:
        grammar_of(StructuredOutputConfig(json_schema=json.dumps(schema)))
    except ConfigError as error:
        return str(error)
    return ""
