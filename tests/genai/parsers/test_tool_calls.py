"""Tool calls in a complete text."""

from __future__ import annotations

import json

import pytest

from genai_layer import GenAIError, Llama3JsonToolParser, Llama3PythonicToolParser

CALL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"location": "New York, NY"}},
}


def calls(parser, text):
    message = {"content": text}
    parser.parse(message)
    assert message.pop("content") == text
    return message.get("tool_calls")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Calling: {json.dumps(CALL)}", [CALL]),
        ('a {"b": {}} c', [{"b": {}}]),
        ('{"a": 1, "a": 2}', [{"a": 2}]),
        ("{}", [{}]),
        ("}{", None),
        ("no call", None),
    ],
)
def test_a_json_call_is_the_text_in_braces(text, found) -> None:
    assert calls(Llama3JsonToolParser(), text) == found


@pytest.mark.parametrize("text", ["{a}", '{"a": 1} and {"b": 2}', '{"a": NaN}', '{"a": "\\ud800"}'])
def test_braces_without_json_are_an_error(text) -> None:
    with pytest.raises(GenAIError, match="a tool call must be a JSON object"):
        Llama3JsonToolParser().parse({"content": text})


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        (
            'a<|eot_id|>[get_weather(location="New York, NY", unit="celsius")]<|eom_id|>',
            "get_weather",
            {"location": "New York, NY", "unit": "celsius"},
        ),
        ("[f(a='1', b=2)]", "f", {}),
        ('[f(a="1"), g(b="2")]', "f", {"a": "1", "b": "2"}),
        ('[a\nb] [f(x = "é")]', "f", {"x": "é"}),
        ('[f(x="1", é="2")]', "f", {"x": "1"}),
        ('[f(x="1"]', "f", {}),
        ('[f(x="1" b="2") ]', "f", {"x": "1", "b": "2"}),
        ("[1, 2]", "1, 2", {}),
        ('[x="1" ]', 'x="1" ', {"x": "1"}),
        ("[]", "", {}),
        ('[f(a="x]y", b="2")]', "f", {}),
    ],
)
def test_a_pythonic_call_is_the_first_text_in_brackets(text, name, arguments) -> None:
    found = calls(Llama3PythonicToolParser(), text)
    assert found == [{"name": name, "arguments": arguments}]


@pytest.mark.parametrize("text", ["no call", '[f(a="1")', "[a\rb]"])
def test_without_brackets_there_is_no_call(text) -> None:
    assert calls(Llama3PythonicToolParser(), text) is None


@pytest.mark.parametrize("parser", [Llama3JsonToolParser(), Llama3PythonicToolParser()])
def test_a_message_without_text_is_an_error(parser) -> None:
    with pytest.raises(GenAIError, match="must be the text"):
        parser.parse({})
