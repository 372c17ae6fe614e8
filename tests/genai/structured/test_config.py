from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from genai_layer import (
    ConfigError,
    GenerationConfig,
    StructuralTagItem,
    StructuralTagsConfig,
    StructuredOutputConfig,
)

S = StructuredOutputConfig
A, B, C = S.Regex("a"), S.ConstString("b"), S.AnyText()
TAG = S.Tag("<", C, ">")

PRINTED: list[tuple[Any, str]] = [
    (A, 'Regex("a")'),
    (S.JSONSchema("{}"), 'JSONSchema("{}")'),
    (S.EBNF('root ::= "a"'), 'EBNF("root ::= "a"")'),
    (C, "AnyText()"),
    (S.QwenXMLParametersFormat("{}"), "QwenXMLParametersFormat(json_schema={})"),
    (S.Concat(A, "{}"), 'Concat(Regex("a"), {})'),
    (S.Union([A, B, C]), 'Union(Regex("a"), ConstString("b"), AnyText())'),
    (TAG, 'Tag(begin="<", content=AnyText(), end=">")'),
    (
        S.TriggeredTags(["<"], [TAG], stop_after_first=True),
        'TriggeredTags(triggers=["<"], tags=[Tag(begin="<", content=AnyText(), end=">")], '
        "at_least_one=False, stop_after_first=True)",
    ),
    (
        S.TagsWithSeparator([TAG], ";", True),
        'TagsWithSeparator(separator=";", tags=[Tag(begin="<", content=AnyText(), end=">")], '
        "at_least_one=true, stop_after_first=false)",
    ),
    (
        StructuralTagsConfig(structural_tags=[StructuralTagItem(begin="<")], triggers=["<"]),
        "StructuralTagsConfig(structural_tags=[StructuralTagItem(begin='<', schema='', end='')], "
        "triggers=['<'])",
    ),
    (
        S(regex="a'"),
        'StructuredOutputConfig(json_schema=None, regex="a\'", grammar=None, '
        "structural_tags_config=None, compound_grammar=None)",
    ),
]


@pytest.mark.parametrize(("value", "text"), PRINTED)
def test_values_print_as_in_openvino_genai(value: Any, text: str) -> None:
    assert (repr(value), str(value)) == (text, text)


JOINED = [
    (A + B + C, S.Concat(A, B, C)),
    (A + (B + C), S.Concat(A, B, C)),
    ((A + B) + (A + C), S.Concat(A, B, A, C)),
    (A | B | C, S.Union(A, B, C)),
    (A | B, S.Union(elements=[A, B])),
    (A | (B | C), S.Union(A, B, C)),
    ((A | B) + C, S.Concat(S.Union(A, B), C)),
    (A + "{}", S.Concat(A, "{}")),
]


@pytest.mark.parametrize(("joined", "expected"), JOINED)
def test_operators_join_elements(joined: Any, expected: Any) -> None:
    assert joined == expected


def test_concat_and_union_need_two_formats() -> None:
    for kind in (S.Concat, S.Union):
        with pytest.raises(ValueError, match=f"{kind.__name__}: pass two"):
            kind(A)
        with pytest.raises(ConfigError, match="pass a list of StructuralFormat or str"):
            kind(A, 1)
    with pytest.raises(ConfigError, match="pass a list of StructuralFormat or str"):
        A + 1  # type: ignore[operator]


def test_a_configuration_has_one_grammar() -> None:
    with pytest.raises(ConfigError, match="has json_schema, regex; set one of"):
        S(json_schema="{}", regex="a")
    with pytest.raises(ConfigError, match="has no grammar; set one of"):
        S(regex=None)
    with pytest.raises(ConfigError, match="did you mean regex"):
        S(regexp="a")
    with pytest.raises(ConfigError, match="backend = 'outlines'"):
        S(regex="a", backend="outlines")
    assert S(regex="a", backend="xgrammar") != S(regex="b")


def test_the_number_of_grammars_is_checked_when_a_generation_begins() -> None:
    config = GenerationConfig(max_new_tokens=1, structured_output_config=S())
    with pytest.raises(ConfigError, match="structured_output_config has no grammar"):
        config.validate()
    assert config.structured_output_config is not None
    config.structured_output_config.regex = "a"
    config.validate()


def test_beam_search_with_a_grammar_is_rejected() -> None:
    config = GenerationConfig(max_new_tokens=1, num_beams=2, structured_output_config=S(regex="a"))
    with pytest.raises(ConfigError, match="num_beams"):
        config.validate()


def test_a_generation_config_has_a_copy() -> None:
    given = S(regex="a")
    config = GenerationConfig(structured_output_config=given)
    given.regex = "b"
    assert config.structured_output_config == S(regex="a")
    assert copy.deepcopy(config) == config


def test_other_types_are_rejected() -> None:
    with pytest.raises(ConfigError, match="structured_output_config"):
        GenerationConfig(structured_output_config=5)
    for name in ("regex", "structural_tags_config", "compound_grammar"):
        with pytest.raises(ConfigError, match=name):
            setattr(S(), name, 1)


SCHEMA = json.dumps({"type": "integer"})
EQUAL: list[tuple[Callable[[], S], Callable[[], S]]] = [
    (lambda: S(json_schema=SCHEMA), lambda: S(compound_grammar=S.JSONSchema(SCHEMA))),
    (lambda: S(regex="a"), lambda: S(structural_tags_config=A)),
    (lambda: S(grammar="root ::= []"), lambda: S(structural_tags_config=S.EBNF("root ::= []"))),
    (
        lambda: S(
            structural_tags_config=StructuralTagsConfig(
                structural_tags=[StructuralTagItem(begin="<a", schema=SCHEMA, end=">")],
                triggers=["<"],
            )
        ),
        lambda: S(
            structural_tags_config=S.TriggeredTags(["<"], [S.Tag("<a", S.JSONSchema(SCHEMA), ">")])
        ),
    ),
    (
        lambda: S(
            structural_tags_config='{"type": "structural_tag", "format": {"type": "any_text"}}'
        ),
        lambda: S(structural_tags_config=C),
    ),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_all_kinds_have_one_json_form(one: Callable[[], S], other: Callable[[], S]) -> None:
    assert one().to_format() == other().to_format()
