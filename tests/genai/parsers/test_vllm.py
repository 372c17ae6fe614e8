"""Parsers of vLLM, with objects of their form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from genai_layer import ConfigError, ParseError, VLLMParserWrapper

CALLS = {"tools_called": True, "tool_calls": [{"name": "f"}], "content": "a"}


class Extracted:
    """Result in vLLM's form: a pydantic model."""

    def model_dump_json(self) -> str:
        return json.dumps(CALLS)


class Old:
    """Result in the form of pydantic 1."""

    def json(self) -> str:
        return json.dumps(CALLS)


class ToolParser:
    def __init__(self, result: object) -> None:
        self.result = result

    def extract_tool_calls(self, text: str, request: None) -> Any:
        assert (text, request) == ("the text", None)
        return self.result


class ReasoningAndTools(ToolParser):
    def extract_reasoning(self, text: str, request: None) -> Any:
        assert (text, request) == ("the text", None)
        return "b", "c"


@pytest.mark.parametrize("result", [Extracted(), Old()])
def test_tool_calls_replace_the_content(result) -> None:
    message = {"content": "the text", "other": 1}
    VLLMParserWrapper(ToolParser(result)).parse(message)
    assert message == CALLS | {"other": 1}


def test_results_of_both_methods_are_joined() -> None:
    message = {"content": "the text"}
    VLLMParserWrapper(ReasoningAndTools(Extracted())).parse(message)
    assert message == CALLS | {"content": "ac", "reasoning": "b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("x", "is not JSON"), (None, "is not JSON"), ("[1]", "is not a JSON object")],
)
def test_tool_calls_that_are_no_json_object_are_errors(monkeypatch, text, message) -> None:
    monkeypatch.setattr(Extracted, "model_dump_json", lambda _: text)
    with pytest.raises(ParseError, match=f"extract_tool_calls, model_dump_json: .* {message}"):
        VLLMParserWrapper(ToolParser(Extracted())).parse({"content": "the text"})


def test_other_objects_and_results_are_errors() -> None:
    with pytest.raises(ConfigError, match="needs extract_tool_calls or extract_reasoning"):
        VLLMParserWrapper(3)
    with pytest.raises(ParseError, match="extract_tool_calls returned 3"):
        VLLMParserWrapper(ToolParser(3)).parse({"content": "the text"})
    parser = ReasoningAndTools(Extracted())
    parser.extract_reasoning = lambda text, request: "b"  # type: ignore[method-assign]
    with pytest.raises(ParseError, match=r"'b': must be \(reasoning, content\)"):
        VLLMParserWrapper(parser).parse({"content": "the text"})
