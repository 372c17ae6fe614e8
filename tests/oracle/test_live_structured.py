"""Structured output compared to the real openvino_genai, live.

Both pipelines run a model that prefers a given text. With a grammar of the text, both say the
text; with another grammar, both leave the text at the same token, and then choose the lowest id
that the grammar allows. So equal answers are equal masks.

Skipped unless openvino_genai and openvino_tokenizers are installed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
import tokenizers
from tests.oracle.echoing_model import LENGTH, save_echoing_model

import genai_layer as ours
from genai_layer.adapters.openvino import load_core

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

Make = Callable[[Any], Any]
"""Returns a configuration, given StructuredOutputConfig of either package."""


END = "<|im_end|>"


@pytest.fixture(scope="module")
def bytewise(demo: Path) -> tokenizers.Tokenizer:
    """Return the demo model's tokenizer without merges: each byte of a text is a token."""
    state = json.loads((demo / "tokenizer.json").read_text())
    state["model"]["merges"] = []
    return tokenizers.Tokenizer.from_str(json.dumps(state))


@pytest.fixture(scope="module")
def folder(
    genai_folder: Path, bytewise: tokenizers.Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    target = tmp_path_factory.mktemp("structured")
    for file in genai_folder.iterdir():
        if file.stem != "openvino_model":
            shutil.copy(file, target)
    save_echoing_model(target / "openvino_model.xml", bytewise.get_vocab_size())
    return target


@pytest.fixture(scope="module")
def say(folder: Path, bytewise: tokenizers.Tokenizer) -> Callable[[Make | None, str], list[str]]:
    """Return a function: the answers of ours and theirs, in a grammar, to a text."""
    end = bytewise.token_to_id(END)
    pipes = (
        (ours, ours.LLMPipeline(folder, "CPU", core=load_core())),
        (theirs, theirs.LLMPipeline(folder, "CPU", ATTENTION_BACKEND="SDPA")),
    )

    def answers(make: Make | None, text: str) -> list[str]:
        ids = bytewise.encode(text, add_special_tokens=False).ids
        prompt = np.array([[*ids, *[end] * (LENGTH - len(ids))]])
        found: list[str] = []
        for package, pipe in pipes:
            config = package.GenerationConfig(eos_token_id=end, max_new_tokens=len(ids) + 3)
            if make is not None:
                config.structured_output_config = make(package.StructuredOutputConfig)
            tokens = pipe.generate(ov.Tensor(prompt), config).tokens[0]
            found.append(bytewise.decode(tokens, skip_special_tokens=False))
        return found

    return answers


DATE = 'root ::= d d "-" month  # of two digits\nmonth ::= d{2}\nd ::= [0-9]'
SUM = 'root ::= t ([-+] t)*\nt ::= [0-9]+ | "(" root ")"'
MIXED = 'root ::= "(" root ")" [a-z]* "e" | "a" "bc" | "ab" "d" | "\\x41" [\\u00e9-ü] | [^a-z(]'
PAIR = json.dumps(
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "pattern": "x+"}},
        "required": ["a"],
    }
)
OPEN = json.dumps(
    {"type": "object", "properties": {"x": {"type": "object"}, "y": {"type": "array"}}}
)
PATTERNS = json.dumps({"type": "object", "patternProperties": {"^a+$": {"type": "integer"}}})
NAMES = json.dumps(
    {
        "type": "object",
        "propertyNames": {"pattern": "^a+$"},
        "additionalProperties": {"type": "integer"},
    }
)
CALL = json.dumps(
    {
        "type": "object",
        "properties": {
            "s": {"enum": ["ok", "no"], "type": "string"},
            "t": {"type": "string", "pattern": "^[A-Z]{1,3}$"},
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "u": {"type": "string"},
        },
        "required": ["s", "t"],
    }
)
S_OK, T_AB = '<parameter=s>"ok"</parameter>', "<parameter=t>AB</parameter>"


def tags(kind: Any) -> Any:
    return [
        kind.Tag(begin="<f=a>", content=kind.ConstString("A"), end="</f>"),
        kind.Tag(begin="<f=b>", content=kind.JSONSchema(PAIR), end="</f>"),
    ]


def triggered(*flags: bool) -> Make:
    return lambda kind: kind(structural_tags_config=kind.TriggeredTags(["<f="], tags(kind), *flags))


def separated(*flags: bool) -> Make:
    return lambda kind: kind(structural_tags_config=kind.TagsWithSeparator(tags(kind), ";", *flags))


TRIGGERED = ["hi", "hi<f=a>A</f>", "<f=a>A</f>x<", '<f=b>{"a":1}</f> <f=a>A</f>', "hi<f=c", "hi<f"]
SEPARATED = ["", "<f=a>A</f>", '<f=a>A</f>;<f=b>{ "a":2}</f>', "<f=a>A</f>;", "x"]

CASES: dict[str, tuple[Make, list[str]]] = {
    "regex": (
        lambda kind: kind(regex=r"^a*ab|c.d|[^x]\s|\d{2,}$"),
        ["ab", "aaab", "c\nd", "y ", "y\u00a0", "12", "x ", "yé", "1"],
    ),
    "empty": (lambda kind: kind(regex=""), ["", "a"]),
    "no repetition": (lambda kind: kind(regex="a{0}b"), ["b", "ab", ""]),
    "email": (
        lambda kind: kind(regex=r"^[a-zA-Z0-9._%+-]{1,64}@[a-z]{1,64}\.[a-z]{1,10}$"),
        ["me@here.org", "me@", "@", "a.b%c@d.e."],
    ),
    "date": (lambda kind: kind(grammar=DATE), ["12-34", "1-2"]),
    "sum": (lambda kind: kind(grammar=SUM), ["1+23", "(1-2)+3", "(1", "1+", ")"]),
    "mixed": (lambda kind: kind(grammar=MIXED), ["(abd)xe", "abc", "abd", "Aé", "é", "q", "(abx"]),
    "pair": (
        lambda kind: kind(json_schema=PAIR),
        [
            '{"a":1}',
            '{ "a" : 1 ,\n"b":\t"xx"}',
            '{"a":1,"c":2}',
            '{"a":1,"b":"axx"}',
            '{"a":-10}',
            '{"a":1.5}',
            ' {"a":1}',
            '{"a":1} ',
        ],
    ),
    "open": (
        lambda kind: kind(json_schema=OPEN),
        ["{}", '{"x":{"q":[1,null]}}', '{"y":[2.5e3]}', '{"x":{},"y":[]}', '{"z":1}'],
    ),
    "patterns": (lambda kind: kind(json_schema=PATTERNS), ['{"aa":1}', '{"b":1}', "{}"]),
    "names": (lambda kind: kind(json_schema=NAMES), ['{"aa":1}', '{"b":1}', "{}"]),
    "any": (lambda kind: kind(json_schema="{}"), ["[]", "1", '"a"', '{"a":[true]}']),
    "concat": (
        lambda kind: kind(structural_tags_config=kind.ConstString("fun") + kind.JSONSchema(PAIR)),
        ['fun{"a":1}', 'fun {"a":1}'],
    ),
    "text": (
        lambda kind: kind(
            structural_tags_config=kind.Regex("[a-z]*") + kind.EBNF(DATE) + kind.AnyText()
        ),
        ["abc12-34 anything é", "12-34"],
    ),
    "tag": (
        lambda kind: kind(
            structural_tags_config=kind.Tag("<a>", kind.AnyText(), "</a>") + kind.ConstString(";")
        ),
        ["<a>x</b</a>;", "<a></a>;", "<a></a>x"],
    ),
    "union": (
        lambda kind: kind(structural_tags_config=kind.ConstString("yes") | kind.ConstString("no")),
        ["yes", "no", "maybe"],
    ),
    "nested": (
        lambda kind: kind(
            compound_grammar=kind.Tag(
                "<o>",
                kind.ConstString("a") | kind.Concat(kind.ConstString("b"), kind.Regex("c*")),
                "</o>",
            )
        ),
        ["<o>a</o>", "<o>bcc</o>", "<o></o>"],
    ),
    "json tag": (
        lambda kind: kind(
            structural_tags_config='{"type": "structural_tag", "format": '
            '{"type": "const_string", "value": "abc"}}'
        ),
        ["abc", "b"],
    ),
    "qwen": (
        lambda kind: kind(structural_tags_config=kind.QwenXMLParametersFormat(CALL)),
        [
            S_OK + T_AB,
            f"\n{S_OK}\n{T_AB}",
            f"{S_OK}{T_AB}<parameter=n> null</parameter>",
            f"{S_OK}{T_AB}<parameter=u>x <y</parameter>",
            S_OK.replace('"', "") + T_AB,
            T_AB + S_OK,
        ],
    ),
    "triggered": (triggered(), TRIGGERED),
    "triggered, one": (triggered(True), TRIGGERED),
    "triggered, first": (triggered(False, True), TRIGGERED),
    "triggered, only": (triggered(True, True), TRIGGERED),
    "separated": (separated(), SEPARATED),
    "separated, one": (separated(True), SEPARATED),
    "separated, first": (separated(False, True), SEPARATED),
    "separated, only": (separated(True, True), SEPARATED),
}


@pytest.mark.parametrize("name", CASES)
def test_answers_are_equal(name: str, say: Callable[[Make, str], list[str]]) -> None:
    make, texts = CASES[name]
    answers = {text: say(make, text) for text in texts}
    found, expected = ({text: pair[place] for text, pair in answers.items()} for place in (0, 1))
    assert found == expected
    assert found[texts[0]] == f"{texts[0]}{END}" or name.endswith(("one", "only"))


DIFFERENT: list[tuple[str, str, str, str]] = [
    ("integers have limits", '{"type":"integer","minimum":0,"maximum":128}', "129", "12"),
    ("escapes of plain characters", '{"type":"string"}', '"\\u00e9"', '"\\u0009"'),
    ("the control character DEL", '{"type":"string"}', '"\x7f"', '"!"'),
    ("special tokens in a text", '{"type":"string"}', '"<|endoftext|>"', '"!"'),
]


@pytest.mark.parametrize(("what", "schema", "text", "expected"), DIFFERENT)
def test_what_only_the_real_one_allows(
    what: str, schema: str, text: str, expected: str, say: Callable[[Make, str], list[str]]
) -> None:
    found, other = say(lambda kind: kind(json_schema=schema), text)
    assert (found, other) == (f"{expected}{END}", f"{text}{END}"), what


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ('{"type":"number","minimum":0,"maximum":99}', "12.1234567"),
        ('{"type":"string","maxLength":1}', '"\\n"'),
        ('{"type":"array","prefixItems":[{"type":"integer"}]}', "[]"),
    ],
)
def test_what_only_this_one_allows(
    schema: str, text: str, say: Callable[[Make, str], list[str]]
) -> None:
    found, other = say(lambda kind: kind(json_schema=schema), text)
    assert found == f"{text}{END}" != other


PRINTED: list[Make] = [
    lambda kind: kind(regex="a'\n"),
    lambda kind: kind(
        structural_tags_config=kind.Concat(kind.Regex("a"), kind.EBNF("b"), kind.JSONSchema("{}"))
    ),
    lambda kind: kind(structural_tags_config=kind.Union([kind.AnyText(), "{}"])),
    lambda kind: kind(
        compound_grammar=kind.QwenXMLParametersFormat("{}") | kind.ConstString("x") | kind.Regex("")
    ),
    lambda kind: (kind.Regex("a") + kind.Regex("b")) + (kind.Regex("c") + "x"),
    lambda kind: kind(structural_tags_config="x"),
    *(triggered(), separated(True, True)),
]


@pytest.mark.parametrize("make", PRINTED)
def test_configurations_print_equally(make: Make) -> None:
    assert repr(make(ours.StructuredOutputConfig)) == repr(make(theirs.StructuredOutputConfig))


def test_deprecated_tags_print_equally() -> None:
    found, expected = (
        repr(
            package.StructuralTagsConfig(
                structural_tags=[package.StructuralTagItem(begin="<", schema="{}")], triggers=["<"]
            )
        )
        for package in (ours, theirs)
    )
    assert found == expected
