"""Texts that each kind of grammar accepts and rejects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.genai.grammars.conftest import Accepts

from genai_layer import ConfigError, StructuredOutputConfig

S = StructuredOutputConfig

REGEXES = [
    (r'^\{"city":"(Dublin|Munich)"\}$', ['{"city":"Munich"}'], ['{"city":"Rome"}', ""]),
    ("a*ab|c.d", ["ab", "aaab", "c\nd"], ["b", "ac"]),
    ("^(?:a|b){2,3}?$|^c+", ["ab", "aba", "ccc"], ["a", "abab"]),
    (r"[^\d\s][\w-]*", ["x", "é", "x-1_"], ["1", " ", "x!"]),
    (r"(?<year>\d{4})-\D?", ["2024-", "2024-x"], ["2024-1"]),
    (r"\x41\u00e9\t\[[[\]^-]", ["Aé\t[[", "Aé\t[]", "Aé\t[-", "Aé\t[^"], ["A"]),
    ("a|", ["a", ""], ["b"]),
    ("", [""], ["a"]),
    ("a{0}b", ["b"], ["ab", ""]),
    ("(x{0,0}y{0})*", [""], ["x", "y"]),
    ("[^]", ["\n"], [""]),
]


@pytest.mark.parametrize(("pattern", "right", "wrong"), REGEXES)
def test_a_regular_expression_matches_the_whole_text(
    accepts: Accepts, pattern: str, right: list[str], wrong: list[str]
) -> None:
    check(accepts, S(regex=pattern), right, wrong)


DATE = """
    root ::= date  # a comment
    date ::= year "-" month
    year ::= digit{4}
    month ::= digit
              digit
    digit ::= [0-9]
"""
SUM = 'root ::= term ([-+] term)*\nterm ::= [0-9]+ | "(" root ")"'
BRACKETS = 'root ::= "(" root ")" | "a" "bc" | "ab" "d" | [a-z]* "end" | ()'

GRAMMARS = [
    (DATE, ["2024-11"], ["2024-1", "2024"]),
    (SUM, ["1", "12+(3-4)"], ["1+", "(1", ""]),
    (BRACKETS, ["abc", "((abd))", "(xend)", "endend", ""], ["(abc", "ab"]),
    ('root ::= "a"{0} b{0} "c"\nb ::= "b"', ["c"], ["ac", "bc"]),
    (r'root ::= "\x41\n" [\u00e9-\u00ea\-]? [^a]', ["A\né-", "A\nx"], ["A\na"]),
    ('root ::= a{2,}\na ::= "x" | a "y"', ["xx", "xyx"], ["x"]),
]


@pytest.mark.parametrize(("grammar", "right", "wrong"), GRAMMARS)
def test_an_ebnf_grammar_is_followed_exactly(
    accepts: Accepts, grammar: str, right: list[str], wrong: list[str]
) -> None:
    check(accepts, S(grammar=grammar), right, wrong)


def properties(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": ["a"]}


SCHEMAS: list[tuple[Any, list[str], list[str]]] = [
    (
        properties(a={"type": "integer"}, b={"type": "string", "pattern": "x+"}),
        ['{"a":1}', '{ "a" : -1 ,\n"b":"xx"\t}'],
        ['{"a":1,"c":2}', '{"a":1,"b":"axx"}', '{"b":"x"}', ' {"a":1}', '{"a":1.5}'],
    ),
    (
        properties(a={"oneOf": [{"type": "null"}, properties(a={"enum": ["é", 1]})]}),
        ['{"a":null}', '{"a":{"a":1}}', '{"a":{"a":"é"}}'],
        ['{"a":{"a":2}}', '{"a":{"b":2}}', '{"a":{"a":1,"b":2}}'],
    ),
    ({"type": "object"}, ["{}", '{"x":{"y":[1,null,true]}}'], ["[]"]),
    (properties() | {"additionalProperties": {"type": "null"}}, ['{"a":null}'], ["{}"]),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, ["[1]"], ["[1,2]"]),
    ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"const": 7}}}, ["7"], ["8"]),
    ({"type": "string", "pattern": r"^a\$$"}, ['"a$"'], ['"a"']),
    (True, ["1", '"a"'], ["a"]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), SCHEMAS)
def test_objects_of_a_schema_are_closed_and_patterns_are_whole(
    accepts: Accepts, schema: Any, right: list[str], wrong: list[str]
) -> None:
    check(accepts, S(json_schema=json.dumps(schema)), right, wrong)


BROKEN = [
    (S(regex="("), r"regular expression, line 1, column 2: \) is expected"),
    (S(regex="a)"), "a group is closed"),
    (S(regex="a**"), "two repetitions"),
    (S(regex="a{3,2}"), "exchange the limits"),
    (S(regex="a{x}"), "numbers below"),
    (S(regex="[b-a]"), "exchange them"),
    (S(regex="[a"), "not closed"),
    (S(regex="[]"), "empty"),
    (S(regex="a^b"), r"\^ is not supported here"),
    (S(regex="(?=a)"), "look-around"),
    (S(regex=r"\bfoo"), "word boundaries"),
    (S(regex=r"(a)\1"), r"the escape \\1"),
    (S(regex=r"\ud800"), "not the code of a character"),
    (S(regex="(" * 200 + ")" * 200), "nested more than 100 deep"),
    (S(regex="a" * (1 << 18)), "has 2621.. characters; at most 262144"),
    (S(grammar='a ::= "x"'), "no rule root"),
    (S(grammar="root ::= b"), "refers to b, which is no rule"),
    (S(grammar='root ::= "a'), 'add "'),
    (S(grammar='root ::= "a"\nroot ::= "b"'), "line 2, column 10: the rule root is defined twice"),
    (S(grammar='root ::= "a" (= "b")'), "look-ahead"),
    (S(grammar='root ::= TagDispatch(("a", b))'), "the macro TagDispatch"),
    (S(grammar=r"root ::= [\d]"), r"the escape \\d"),
    (S(grammar="root ::= root"), "llguidance rejects the grammar"),
    (S(json_schema="{"), "not JSON"),
    (S(json_schema="3"), "must be an object or a boolean"),
    (S(json_schema='{"type":"text"}'), "Invalid type: text; simplify or correct it"),
    (S(json_schema='{"pattern":"(?=a)"}'), r"error: look-around, .* is not supported; simplify"),
    (S(json_schema='{"pattern":"a("}'), r"regex parse error: .* error: unclosed group; simplify"),
    (
        S(json_schema='{"type":"string","format":"ipv4network","pattern":"^x"}'),
        "schema: no text has the pattern, the format and the length of a string; simplify",
    ),
    (S(json_schema='{"not":{}}'), r'Unimplemented keys: \["not"\]'),
    (S(json_schema='{"properties":[1]}'), r"properties = \[1\]: must be an object"),
    (S(json_schema='{"const":"\\ud800"}'), r"'\\ud800' is a lone surrogate"),
    (S(regex="\ud800"), r"'\\ud800' is a lone surrogate"),
    (S(json_schema="[" * 100000), "not JSON"),
]


@pytest.mark.parametrize(("config", "message"), BROKEN)
def test_a_broken_grammar_is_named(accepts: Accepts, config: S, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        accepts(config, "")


def check(accepts: Accepts, config: S, right: list[str], wrong: list[str]) -> None:
    """Compare the accepted texts with the expected ones."""
    found = [text for text in (*right, *wrong) if accepts(config, text)]
    assert found == right
