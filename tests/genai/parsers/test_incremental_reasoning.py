"""Reasoning in a streamed text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_layer import (
    ConfigError,
    DeepSeekR1ReasoningIncrementalParser,
    IncrementalParser,
    Phi4ReasoningIncrementalParser,
    ReasoningIncrementalParser,
)

ANSWER = "<think>\nTwo plus one is three.</think>\n\nThe answer is \\boxed{3}."


def read(parser: IncrementalParser, parts: list[str]) -> tuple[str | None, str]:
    """Return the joined reasoning, None if there was none, and the joined content."""
    reasoning: list[str] = []
    content = ""
    for part in parts:
        delta: dict[str, str] = {}
        content += parser.parse(delta, part)
        if "reasoning_content" in delta:
            reasoning.append(delta["reasoning_content"])
    return "".join(reasoning) if reasoning else None, content


@pytest.mark.parametrize(
    ("parts", "reasoning"),
    [
        (re.split(r"(\s+)", ANSWER), "\nTwo plus one is three."),
        ([ANSWER], "\nTwo plus one is three."),
        (["<th", "ink>", "a", "</think>", "b"], "a"),
        (["<t", "h", "ink>", "a", "</th", "ink>", "b"], "a"),
        (["<think>", "a", "</thi", "b", "nk>", "c", "</think>"], "a</thibnk>c"),
        (["<thi", "a", "nk>", "<think>", "b", "</think>", "c", "nk>"], "b"),
    ],
)
def test_tags_in_any_parts_are_found(parts, reasoning) -> None:
    assert read(Phi4ReasoningIncrementalParser(), parts) == (reasoning, "".join(parts))


@pytest.mark.parametrize("parts", [["<th", "a", "b"], ["<th", "a", "ink>", "b", "</think>", "c"]])
def test_without_the_open_tag_nothing_is_reasoning_and_all_text_is_held(parts) -> None:
    assert read(Phi4ReasoningIncrementalParser(), parts) == (None, "")


@pytest.mark.parametrize(
    ("keep", "content"), [(True, ANSWER), (False, "\n\nThe answer is \\boxed{3}.")]
)
def test_content_keeps_or_loses_the_reasoning(keep, content) -> None:
    parser = ReasoningIncrementalParser(keep_original_content=keep)
    assert read(parser, list(ANSWER)) == ("\nTwo plus one is three.", content)


@given(st.integers(1, 20))
def test_reasoning_without_open_tag_ends_with_the_close_tag(size) -> None:
    text = "<｜begin▁of▁sentence｜>First, 2 plus 1.\n</think>\n\n**Solution**</think>"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    reasoning, content = read(DeepSeekR1ReasoningIncrementalParser(), parts)
    assert reasoning == text.partition("</think>")[0]
    assert content == text


@given(st.lists(st.integers(1, 9), max_size=30), st.booleans())
def test_the_result_does_not_depend_on_the_parts(sizes, keep) -> None:
    text, parts = f"a<th<think></th{ANSWER}", []
    for size in sizes:
        parts.append(text[:size])
        text = text[size:]
    reasoning, content = read(ReasoningIncrementalParser(True, keep), [*parts, text])
    assert reasoning == "</th<think>\nTwo plus one is three."
    after = "\n\nThe answer is \\boxed{3}."
    assert content == (f"a<th<think></th{ANSWER}" if keep else after)


def test_a_second_text_is_content_until_reset() -> None:
    parser = Phi4ReasoningIncrementalParser()
    first = read(parser, list(ANSWER))
    assert read(parser, list(ANSWER)) == (None, ANSWER)
    parser.reset()
    assert read(parser, list(ANSWER)) == first


def test_content_after_the_close_tag_is_in_the_message_too() -> None:
    delta: dict[str, str] = {}
    parser = Phi4ReasoningIncrementalParser()
    assert parser.parse(delta_message=delta, delta_text="<think>a</think>b", delta_tokens=[1])
    assert delta == {"reasoning_content": "a", "content": "b"}


def test_an_empty_close_tag_ends_the_reasoning_before_it_begins() -> None:
    parser = ReasoningIncrementalParser(False, close_tag="")
    assert read(parser, ["a", "b"]) == ("", "ab")


def test_a_tag_that_is_no_text_is_an_error() -> None:
    with pytest.raises(ConfigError, match="close_tag = 3: pass a str"):
        ReasoningIncrementalParser(close_tag=3)  # type: ignore[arg-type]


def test_methods_that_a_parser_lacks_are_named() -> None:
    with pytest.raises(NotImplementedError, match=r"no method parse\(delta_message"):
        IncrementalParser().parse({}, "")
    with pytest.raises(NotImplementedError, match=r"no method reset\(\)"):
        IncrementalParser().reset()
