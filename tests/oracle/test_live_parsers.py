"""Parsers and streamers with parsers, compared to the real openvino_genai on the same texts.

Skipped unless openvino_genai and openvino_tokenizers are installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")
pytest.importorskip("openvino_tokenizers")
pytestmark = pytest.mark.oracle

BOTH = (ours, theirs)
TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "<th", "ink>", "</", "think>", "a", "\n", "é", "b <"]),
    max_size=12,
).map("".join)
CALLS = st.lists(
    st.sampled_from([*'[](){}",=:\n\r é1', "f(", 'x="1"', '"a":', ", ", "[f(", ")]", "\\u00e9"]),
    max_size=14,
).map("".join)
OPTIONS = st.tuples(st.booleans(), st.booleans())
SLOWLY = settings(
    deadline=None,
    max_examples=100,
    # Hypothesis reads the source of all modules first, PyTorch's included.
    suppress_health_check=[HealthCheck.too_slow],
)
COMPLETE = ("DeepSeekR1ReasoningParser", "Phi4ReasoningParser", "ReasoningParser")


def attempt(act: Callable[[], Any]) -> Any:
    """Return an action's result, or "error"; the real messages may cut a character in two."""
    try:
        return act()
    except (RuntimeError, UnicodeDecodeError):
        return "error"


def parse(parser: Any, text: str) -> Any:
    message = {"content": text}
    return attempt(lambda: parser.parse(message)), message


def stream(parser: Any, parts: list[str]) -> list[Any]:
    found = []
    for part in parts:
        delta: dict[str, Any] = {}
        found.append((parser.parse(delta, part), delta))
    return found


def joined(found: list[Any]) -> tuple[str, str]:
    """Return the content and the reasoning of a stream."""
    content = "".join(text for text, _ in found)
    return content, "".join(delta.get("reasoning_content", "") for _, delta in found)


def cut(text: str, sizes: list[int]) -> list[str]:
    """Return the parts of a text, of the given sizes and the rest."""
    parts = []
    for size in sizes:
        parts.append(text[:size])
        text = text[size:]
    return [part for part in (*parts, text) if part]


@given(TAGGED, OPTIONS)
@SLOWLY
def test_reasoning_in_complete_texts_is_equal(text, options) -> None:
    found = [
        [parse(package.ReasoningParser(*options), text)]
        + [parse(getattr(package, name)(), text) for name in COMPLETE]
        for package in BOTH
    ]
    assert found[0] == found[1]


@given(CALLS)
@SLOWLY
def test_tool_calls_are_equal(text) -> None:
    found = [
        [
            parse(package.Llama3PythonicToolParser(), text),
            parse(package.Llama3JsonToolParser(), text),
        ]
        for package in BOTH
    ]
    assert found[0] == found[1]


@given(TAGGED, st.lists(st.integers(1, 9), max_size=20), OPTIONS)
@SLOWLY
def test_reasoning_in_parts_is_theirs_in_single_characters(text, sizes, options) -> None:
    parsers = [package.ReasoningIncrementalParser(*options) for package in BOTH]
    for _ in range(2):
        found = [stream(parser, list(text)) for parser in parsers]
        assert found[0] == found[1]
        parsers[0].reset()
        assert joined(stream(parsers[0], cut(text, sizes))) == joined(found[1])
        for parser in parsers:
            parser.reset()


@pytest.fixture(scope="module")
def tokenizers(genai_folder: Path) -> tuple[Any, Any]:
    """Tokenizers of the demo model."""
    return ours.Tokenizer(genai_folder), theirs.Tokenizer(genai_folder)


def make_streamer(package: Any, tokenizer: Any, *parsers: Any) -> Any:
    class Streamer(package.TextParserStreamer):
        def __init__(self) -> None:
            super().__init__(tokenizer, parsers=list(parsers))
            self.messages: list[Any] = []

        def write(self, message):
            self.messages.append(message)
            return package.StreamingStatus.RUNNING

    return Streamer()


def make_stop(package: Any, word: str) -> Any:
    """Return a parser that ends the stream after a word, with a tool call."""

    class Stop(package.IncrementalParser):
        def parse(self, delta_message, delta_text, delta_tokens=None):
            delta_message["seen"] = {"text": delta_text}
            if word in delta_text:
                delta_message["tool_calls"] = [json.loads('{"name": "f"}')]
                self.set_status(package.StreamingStatus.TOOL_CALL_STOP)
            return delta_text.upper()

        def reset(self):
            self.set_status(package.StreamingStatus.RUNNING)

    return Stop()


@given(TAGGED)
@SLOWLY
def test_streamed_texts_give_equal_messages(tokenizers, text) -> None:
    found = []
    for package, tokenizer in zip(BOTH, tokenizers, strict=True):
        stop, thoughts = make_stop(package, "b"), package.Phi4ReasoningIncrementalParser()
        streamer = make_streamer(package, tokenizer, stop, thoughts)
        streamer.reset()
        statuses = []
        for part in text:
            statuses.append(int(streamer._write(part)))
            if statuses[-1]:
                break
        found.append((statuses, streamer.messages, streamer.get_parsed_message()))
    assert found[0] == found[1]


@given(st.text("abc é😀\n.", max_size=20), st.integers(1, 5))
@SLOWLY
def test_streamed_tokens_give_equal_messages(tokenizers, thought, size) -> None:
    thought = f"\n{thought}\n"
    text = f"<think>{thought}</think>The answer is 3."
    found = []
    # Theirs does not find a close tag that begins in the same text as the open tag ends.
    for package, tokenizer, step in zip(BOTH, tokenizers, (size, 1), strict=True):
        streamer = make_streamer(package, tokenizer, package.Phi4ReasoningIncrementalParser())
        ids = tokenizer.encode(text).input_ids.data[0].tolist()
        for at in range(0, len(ids), step):
            streamer._write(ids[at : at + step])
        streamer.end()
        found.append(streamer.get_parsed_message())
    assert found[0] == found[1] == {"content": text, "reasoning_content": thought}


def test_other_arguments_are_errors_in_both(tokenizers) -> None:
    for package, tokenizer in zip(BOTH, tokenizers, strict=True):
        with pytest.raises((TypeError, RuntimeError)):
            make_streamer(package, tokenizer, package.ReasoningParser())
        with pytest.raises(RuntimeError):
            package.GenerationConfig(parsers=[package.ReasoningIncrementalParser()])
        with pytest.raises(RuntimeError):
            package.IncrementalParser().reset()
        with pytest.raises(RuntimeError):
            package.ReasoningParser().parse({})
