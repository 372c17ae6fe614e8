"""Reasoning in a complete text."""

from __future__ import annotations

import pytest

from genai_layer import (
    DeepSeekR1ReasoningParser,
    GenAIError,
    Parser,
    Phi4ReasoningParser,
    ReasoningParser,
)

TEXT = "a<think>b</think>c"


@pytest.mark.parametrize(
    ("parser", "text", "reasoning", "content"),
    [
        (ReasoningParser(), TEXT, "b", TEXT),
        (ReasoningParser(True, False), TEXT, "b", "ac"),
        (ReasoningParser(True, False), "<think>a", "", "<think>a"),
        (ReasoningParser(True, False), "a</think>b", "", "a</think>b"),
        (ReasoningParser(True, False), "</think><think>a</think>", "", "</think><think>a</think>"),
        (
            ReasoningParser(True, False),
            "<think>a</think>b<think>c</think>",
            "a",
            "b<think>c</think>",
        ),
        (ReasoningParser(False), "a</think>b", "a", "a</think>b"),
        (ReasoningParser(False, False), "a</think>b", "a", "b"),
        (ReasoningParser(False, False), "reasoning alone", "reasoning alone", ""),
        (ReasoningParser(False), "reasoning alone", "reasoning alone", "reasoning alone"),
        (ReasoningParser(False, close_tag=""), "a", "", "a"),
        (ReasoningParser(open_tag="[", close_tag="]"), "a[b]c", "b", "a[b]c"),
        (DeepSeekR1ReasoningParser(), "a</think>b", "a", "a</think>b"),
        (Phi4ReasoningParser(), TEXT, "b", TEXT),
    ],
)
def test_reasoning_is_found(parser, text, reasoning, content) -> None:
    message = {"content": text}
    parser.parse(message)
    assert message == {"content": content, "reasoning_content": reasoning}


@pytest.mark.parametrize("message", [{}, {"content": 3}, {"content": None}])
def test_a_message_without_text_is_an_error(message) -> None:
    with pytest.raises(GenAIError, match=r"message\['content'\] = .*: must be the text"):
        ReasoningParser().parse(message)


def test_a_parser_without_parse_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match=r"Parser has no method parse\(message\)"):
        Parser().parse({"content": ""})
