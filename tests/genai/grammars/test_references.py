"""References of JSON schemas, compared to jsonschema_rs."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer

from genai_layer import ConfigError, StructuredOutputConfig
from genai_layer.grammars.compiler import grammar_of
from genai_layer.serve.openai.schemas.tools import Function
from genai_layer.serve.openai.tools.calls import HERMES, JSON, LLAMA, Form
from genai_layer.serve.openai.tools.offer import call_grammar, make_offer
from genai_layer.structured.formats import StructuralFormat
from genai_layer.testing.toy import EOS, ids_of, make_tokenizer

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
DRAFT_7, DRAFT_4 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (7, 4))
EMBEDDED = {"$id": "http://x/A", "$defs": {"q": {"$ref": "#/$defs/z"}, "z": INTEGER}}
ANCHORED = {
    "$id": "http://x/A",
    "$defs": {"q": {"$anchor": "k", "$ref": "#/$defs/z"}, "z": INTEGER},
}
REFERENCES: dict[str, tuple[str, dict[str, Any]]] = {
    "root": ("#", {}),
    "property": ("#/properties/v", {}),
    "items": ("#/properties/l/items", {}),
    "option": ("#/$defs/A/anyOf/1", {"$defs": {"A": {"anyOf": [TEXT, INTEGER]}}}),
    "$defs": ("#/$defs/A", {"$defs": {"A": TEXT}}),
    "definitions": ("#/definitions/A", {"definitions": {"A": TEXT}, "$schema": DRAFT_7}),
    "escaped": ("#/$defs/a%20b~1%7E0c", {"$defs": {"a b/~c": TEXT}}),
    "anchor": ("#A", {"$defs": {"A": {"$anchor": "A", **TEXT}}}),
    "anchor of draft 7": ("#A", {"definitions": {"A": {"$id": "#A", **TEXT}}, "$schema": DRAFT_7}),
    "address": ("http://x/A", {"$defs": {"A": {"$id": "http://x/A", **TEXT}}}),
    "relative": ("A", {"$id": "http://x/d/r", "$defs": {"A": {"$id": "A", **TEXT}}}),
    "own address": ("http://x/r", {"$id": "http://x/r"}),
    "draft 4": (
        "A",
        {"$schema": DRAFT_4, "id": "http://x/#", "definitions": {"A": {"id": "A", **TEXT}}},
    ),
    "urn": ("urn:example:a#/properties/v", {"$id": "urn:example:a"}),
    "into another": ("http://x/A#/$defs/q", {"$defs": {"A": EMBEDDED, "z": TEXT}}),
    "through another": ("#/$defs/A/$defs/q", {"$defs": {"A": EMBEDDED, "z": TEXT}}),
    "below an unknown keyword": (
        "#/components/schemas/A",
        {
            "components": {
                "schemas": {
                    "A": {"anyOf": [{"$ref": "#/components/schemas/B"}, TEXT]},
                    "B": {"$ref": "#/properties/v"},
                }
            }
        },
    ),
    "anchor of another": ("http://x/A#k", {"$defs": {"A": ANCHORED, "z": TEXT}}),
}
UNRESOLVED = {
    "#/nope": "#/nope leads to no place",
    "#/properties/v/": "leads to no place",
    "#/required/-1": "leads to no place",
    "#nope": "leads to no place",
    "other.json": "other.json leads to no place",
    "http://example.com/x.json#/a": "leads to no place",
    "file:///etc/passwd": "leads to no place",
    "http://[": "http://\\[ is no address",
}


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with the properties of ``schema_of``, in their order."""
    entry = st.tuples(st.booleans(), values)
    return st.fixed_dictionaries({"v": entry, "l": entry, "n": entry}).map(
        lambda found: {name: found[name][1] for name in ("v", "l", "n") if found[name][0]}
    )


VALUES = st.recursive(
    st.sampled_from([1, "a", None]),
    lambda inner: st.lists(inner, max_size=2) | objects(inner),
    max_leaves=6,
)


def schema_of(reference: str, more: dict[str, Any]) -> dict[str, Any]:
    properties = {"v": INTEGER, "l": {"type": "array", "items": TEXT}, "n": {"$ref": reference}}
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


TOKENIZER = LLTokenizer(make_tokenizer().to_str(), eos_token=EOS)


def matcher_of(config: StructuredOutputConfig) -> LLMatcher:
    return LLMatcher(TOKENIZER, grammar_of(config), log_level=0)


def accepts(matcher: LLMatcher, text: str) -> bool:
    ids, copy = ids_of(text), matcher.deep_copy()
    return (
        copy.validate_tokens(ids) == len(ids) and copy.consume_tokens(ids) and copy.is_accepting()
    )


def parameters_of(kind: str) -> dict[str, Any]:
    return schema_of(*REFERENCES[kind])


@pytest.mark.parametrize("kind", REFERENCES)
@given(value=VALUES)
@settings(max_examples=15, deadline=None)
def test_a_reference_of_any_form_means_what_a_validator_reads(kind: str, value: Any) -> None:
    schema = parameters_of(kind)
    matcher = matcher_of(StructuredOutputConfig(json_schema=json.dumps(schema)))
    assert not matcher.is_error(), matcher.get_error()
    right = jsonschema_rs.validator_for(schema).is_valid(value)
    assert accepts(matcher, json.dumps(value)) is right


def forced(schema: dict[str, Any], form: Form, others: int) -> StructuralFormat:
    functions = [Function(name=f"f{n}", parameters={"type": "object"}) for n in range(others)]
    offer = make_offer([Function(name="f", parameters=schema), *functions], "required", None)
    grammar = call_grammar(offer, form, None)
    assert grammar is not None
    return grammar


def free(schema: dict[str, Any], form: Form, others: int) -> StructuralFormat:
    del others
    function = Function(name="f", parameters=schema, strict=True)
    grammar = call_grammar(make_offer([function], "auto", None), form, None)
    assert grammar is not None
    return grammar


@pytest.mark.parametrize(
    ("form", "make"), [(HERMES, forced), (HERMES, free), (LLAMA, forced), (JSON, forced)]
)
@given(kind=st.sampled_from([*REFERENCES]), value=objects(VALUES), others=st.integers(0, 1))
@settings(max_examples=40, deadline=None)
def test_arguments_follow_their_schema_in_each_form(
    form: Form, make: Any, kind: str, value: Any, others: int
) -> None:
    schema = parameters_of(kind)
    matcher = matcher_of(StructuredOutputConfig(structural_tags_config=make(schema, form, others)))
    assert not matcher.is_error(), matcher.get_error()
    call = json.dumps({"name": "f", form.arguments: value})
    right = jsonschema_rs.validator_for(schema).is_valid(value)
    text = f"{form.begin}\n{call}\n{form.end}" if form.begin else call
    assert accepts(matcher, text) is right


@pytest.mark.parametrize(("reference", "message"), UNRESOLVED.items())
def test_a_reference_to_no_place_is_named(reference: str, message: str) -> None:
    schema = schema_of(reference, {"required": ["v"]})
    with pytest.raises(ConfigError, match=message):
        grammar_of(StructuredOutputConfig(json_schema=json.dumps(schema)))


@pytest.mark.parametrize("keyword", ["$dynamicRef", "$recursiveRef", "$dynamicAnchor"])
def test_dynamic_references_are_named(keyword: str) -> None:
    schema = schema_of("#/properties/v", {keyword: "#"})
    matcher = matcher_of(StructuredOutputConfig(json_schema=json.dumps(schema)))
    assert keyword in matcher.get_error()


@pytest.mark.parametrize("keyword", ["example", "x-meta", "examples", "default", "components"])
@pytest.mark.parametrize(
    "data", [{"$ref": "#/nope"}, [{"$ref": "other.json"}], {"a": {"$id": "http://["}}, {"$id": "A"}]
)
def test_references_in_the_values_of_other_keywords_are_data(keyword: str, data: Any) -> None:
    more = {keyword: data, "$defs": {"A": {"$id": "A", **TEXT, keyword: data}}}
    schema = schema_of("A", more)
    matcher = matcher_of(StructuredOutputConfig(json_schema=json.dumps(schema)))
    assert not matcher.is_error(), matcher.get_error()
    assert accepts(matcher, '{"n": "a"}')
    assert not accepts(matcher, '{"n": 1}')


def test_a_broken_reference_in_data_that_another_reference_names_is_an_error() -> None:
    schema = schema_of("#/example", {"example": {"items": {"$ref": "#/nope"}}})
    with pytest.raises(ConfigError, match="#/nope leads to no place"):
        grammar_of(StructuredOutputConfig(json_schema=json.dumps(schema)))


def test_data_with_the_names_of_references_stays() -> None:
    data = {"$ref": "#/nope", "$id": "x"}
    schema = {"anyOf": [{"const": data}, {"enum": [[data]]}], "default": data}
    matcher = matcher_of(StructuredOutputConfig(json_schema=json.dumps(schema)))
    assert accepts(matcher, json.dumps(data))


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        ("#/properties/v", ["5"], ['"5"', "x"]),
        ("#/properties/a~1b", ['["x"]'], ["[1]"]),
        ("#", ['{"v": 1}', '{"n": {"v": 1}}'], ['{"w": 1}', "1"]),
        ("#/$defs/S", ["plain text"], []),
        ("#s", ["plain text"], []),
        ("#/$defs/O/anyOf/0", ["1"], ["x"]),
    ],
)
def test_parameters_in_xml_resolve_references_in_their_schema(
    reference: str, right: list[str], wrong: list[str]
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "v": INTEGER,
            "a/b": {"type": "array", "items": {"$ref": "#/$defs/S"}},
            "n": {"$ref": reference},
        },
        "$defs": {
            "S": {"$ref": "#/$defs/T"},
            "T": {"$anchor": "s", **TEXT},
            "O": {"anyOf": [INTEGER]},
        },
    }
    tag = StructuredOutputConfig.QwenXMLParametersFormat(json.dumps(schema))
    matcher = matcher_of(StructuredOutputConfig(structural_tags_config=tag))
    assert not matcher.is_error(), matcher.get_error()
    for value in right + wrong:
        assert accepts(matcher, f"<parameter=n>{value}</parameter>") is (value in right), value


def test_a_circle_of_references_in_xml_is_named() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}
    tag = StructuredOutputConfig.QwenXMLParametersFormat(json.dumps(schema))
    with pytest.raises(ConfigError, match="#/properties/a leads back to itself"):
        grammar_of(StructuredOutputConfig(structural_tags_config=tag))
