"""Texts that composed formats accept and reject."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.genai.grammars.conftest import Accepts
from tests.genai.grammars.test_grammars import DATE, check

from genai_layer import ConfigError, StructuredOutputConfig

S = StructuredOutputConfig
NUMBER = S.JSONSchema('{"type":"integer"}')
TAGS = [S.Tag("<f=a>", S.ConstString("A"), "</f>"), S.Tag("<f=b>", NUMBER, "</f>")]
ONE, TWO = "<f=a>A</f>", "<f=b>1</f>"
QWEN = json.dumps(
    {
        "type": "object",
        "$defs": {"Text": {"type": "string"}},
        "properties": {
            "status": {"enum": ["ok", "no"], "type": "string"},
            "data": {"pattern": "^[A-Z]+$", "type": "string"},
            "text": {"$ref": "#/$defs/Text"},
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "short": {"type": "string", "maxLength": 2},
        },
        "required": ["status", "data"],
    }
)
CALL = '<parameter=status>"ok"</parameter>'
DATA = "<parameter=data>AB</parameter>"

CASES: list[tuple[Any, list[str], list[str]]] = [
    (S.ConstString("a\n\"'\\"), ["a\n\"'\\"], ["a"]),
    (S.ConstString("\0\x1f\x7f\x80"), ["\0\x1f\x7f\x80"], ["\0"]),
    (S.AnyText(), ["", "any\ntext é"], []),
    (S.ConstString("fun") + NUMBER, ["fun12"], ["fun", "fun 12", "12"]),
    (S.ConstString("yes") | S.ConstString("no") | NUMBER, ["yes", "no", "7"], ["maybe"]),
    (S.Regex("a*") + S.Regex("ab") + S.AnyText(), ["aab!", "ab"], ["b"]),
    (S.Regex("[a-z]*") + NUMBER, ["ab1", "1"], ["ab"]),
    (S.EBNF(DATE) + S.EBNF('root ::= "a" root "b" | ";"'), ["2024-11aa;bb"], ["2024-11a;bb"]),
    (S.Tag("<a>", S.AnyText(), "</a>") + S.ConstString(";"), ["<a>x</b</a>;"], ["<a></a>"]),
    (S.Tag("<a>", S.ConstString("q") + S.AnyText(), "</a>"), ["<a>q!</a>"], ["<a>!</a>", "<a>q"]),
    (S.Tag("", S.Tag("(", S.AnyText(), ")"), "!"), ["(x)!"], ["(x)", "(x!"]),
    (S.QwenXMLParametersFormat(QWEN), [CALL + DATA, f"\n{CALL}\n{DATA}"], [CALL, DATA + CALL]),
    (
        S.QwenXMLParametersFormat(QWEN),
        [
            f"{CALL}{DATA}<parameter=text>x <y</parameter>",
            f"{CALL}{DATA}<parameter=count> null\n</parameter><parameter=short>ab</parameter>",
        ],
        [f"{CALL}{DATA}<parameter=short>abc</parameter>", f"{CALL}{DATA}<parameter=count>x"],
    ),
    (
        S.TriggeredTags(["<f="], TAGS),
        ["", "hi", f"hi{ONE}", f"{ONE} {TWO}!"],
        ["hi<f=c", "hi<f=", "<f=b>x"],
    ),
    (S.TriggeredTags(["<f="], TAGS, True), [ONE, f"{ONE} or {TWO}"], ["", f"hi{ONE}"]),
    (
        S.TriggeredTags(["<f="], TAGS, stop_after_first=True),
        ["hi", f"hi{ONE}"],
        [f"{ONE}!", "<f="],
    ),
    (S.TriggeredTags(["<f="], TAGS, True, True), [ONE, TWO], ["", f"hi{ONE}", f"{ONE}!"]),
    (
        S.Tag("<o>", S.TriggeredTags(["<f="], TAGS), "</o>"),
        ["<o></o>", f"<o>hi{ONE}x{TWO}</o>"],
        ["<o>hi<f=</o>", "<o>hi", "<o></o>x"],
    ),
    (
        S.Tag("<o>", S.TriggeredTags(["<f="], TAGS, stop_after_first=True), "</o>"),
        ["<o>hi</o>", f"<o>hi{ONE}</o>"],
        [f"<o>{ONE}x</o>"],
    ),
    (S.TagsWithSeparator(TAGS, ";"), ["", ONE, f"{ONE};{TWO}"], [f"{ONE};", ONE + TWO]),
    (S.TagsWithSeparator(TAGS, "", True), [ONE, ONE + TWO], [""]),
    (S.TagsWithSeparator(TAGS, ";", True, True), [ONE], ["", f"{ONE};{TWO}"]),
    (S.TagsWithSeparator(TAGS, ";", False, True), ["", ONE], [f"{ONE};{TWO}"]),
]


@pytest.mark.parametrize(("tag", "right", "wrong"), CASES)
def test_formats_compose(accepts: Accepts, tag: Any, right: list[str], wrong: list[str]) -> None:
    check(accepts, S(structural_tags_config=tag), right, wrong)


def test_a_tag_in_json_may_have_several_ends(accepts: Accepts) -> None:
    tag = {"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": [">", "/"]}
    config = S(structural_tags_config=json.dumps({"type": "structural_tag", "format": tag}))
    check(accepts, config, ["<x>", "<x/"], ["<x", "<x/>"])


QWEN_BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"properties": [1]}, r"properties = \[1\]: must be an object"),
    ({"properties": {"a": {}}, "required": 3}, "required = 3: must be a list"),
    ({"properties": {"a": {"anyOf": 3}}}, "anyOf = 3: must be a list"),
    ({"properties": {"a": {"type": "string", "pattern": 3}}}, "pattern = 3: must be a text"),
    ({"properties": {"a": {"type": "string", "maxLength": "x"}}}, "maxLength = 'x': must be an"),
]
BROKEN: list[tuple[Any, str]] = [
    (S.AnyText() + S.Regex("a"), "Concat: only the last element can be free text"),
    (S.AnyText() | S.Regex("a"), "Union: free text"),
    (S.Tag("<", S.AnyText(), ""), "Tag: end is empty"),
    (
        '{"type":"structural_tag","format":{"type":"tag","begin":"<","content":'
        '{"type":"any_text"},"end":[]}}',
        "Tag: end is empty",
    ),
    (S.ConstString(""), "const_string needs a value for value, not ''"),
    (S.TriggeredTags(["<g"], TAGS), "begins with 0 triggers"),
    (S.TriggeredTags(["<", "<f"], TAGS), "begins with 2 triggers"),
    (S.TriggeredTags([""], TAGS), "needs texts"),
    (S.TriggeredTags(["<f="], []), "triggered_tags needs a value for tags"),
    (S.Concat("a", "b"), "'a': not JSON"),
    (S.Concat("1", "2"), "use ConstString for a fixed text"),
    (S.Concat('{"type":"token","token":1}', S.AnyText()), "the type 'token' is not one of"),
    (S.Concat(S.ConstString("a"), '{"type":"any_text","excludes":["x"]}'), "field 'excludes'"),
    (S.QwenXMLParametersFormat('{"type":"string"}'), "needs the type object"),
    (S.QwenXMLParametersFormat('{"type":"object","minProperties":1}'), "minProperties is not"),
    (
        S.QwenXMLParametersFormat('{"type":"object","properties":{"a":{"$ref":"#/x"}}}'),
        "#/x leads to no place of the schema",
    ),
    *(
        (S.QwenXMLParametersFormat(json.dumps({"type": "object", **schema})), message)
        for schema, message in QWEN_BROKEN
    ),
    ("{}", "a text must be"),
]


@pytest.mark.parametrize(("tag", "message"), BROKEN)
def test_a_broken_format_is_named(accepts: Accepts, tag: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        accepts(S(structural_tags_config=tag), "")


def test_formats_that_are_nested_too_deep_are_rejected(accepts: Accepts) -> None:
    tag: Any = S.AnyText()
    for _ in range(5000):
        tag = S.Tag("<", tag, ">")
    with pytest.raises(ConfigError, match="nested too deep"):
        accepts(S(structural_tags_config=tag), "")
