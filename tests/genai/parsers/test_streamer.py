"""Streamers with incremental parsers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import (
    ConfigError,
    IncrementalParser,
    ParseError,
    Phi4ReasoningIncrementalParser,
    ReasoningParser,
    StreamingStatus,
    TextParserStreamer,
    Tokenizer,
)
from genai_layer.testing.toy import SPECIAL, ids_of, is_plain, write_toy_folder

RUNNING, STOP = StreamingStatus.RUNNING, StreamingStatus.STOP
BOS = SPECIAL.index("<bos>")


class Streamer(TextParserStreamer):
    """Streamer that records its messages."""

    answer: Any = RUNNING

    def __init__(self, tokenizer: Tokenizer, *parsers: IncrementalParser) -> None:
        super().__init__(tokenizer, list(parsers))
        self.messages: list[dict[str, Any]] = []

    def write(self, message):
        self.messages.append(message)
        return self.answer

    def joined(self, name: str) -> str:
        return "".join(message.get(name, "") for message in self.messages)


class Recorder(IncrementalParser):
    """Parser that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def parse(self, delta_message, delta_text, delta_tokens=None):
        self.calls.append((delta_text, delta_tokens))
        return delta_text


class Marked(IncrementalParser):
    """Parser of the texts between two marks."""

    inside = False

    def parse(self, delta_message, delta_text, delta_tokens=None):
        if delta_text in ("<start>", "</stop>"):
            self.inside = delta_text == "<start>"
        elif self.inside:
            delta_message["reasoning_content"] = delta_text
        return delta_text


class ToolCall(IncrementalParser):
    """Parser of one JSON object, whose braces are texts of their own."""

    def __init__(self, status: StreamingStatus = RUNNING) -> None:
        self.text: str | None = None
        self.at_end = status

    def parse(self, delta_message, delta_text, delta_tokens=None):
        if delta_text == "{":
            self.text = ""
        if self.text is not None:
            self.text += delta_text
            if delta_text == "}":
                delta_message["tool_calls"] = [json.loads(self.text)]
                self.set_status(self.at_end)
                self.text = None
        return delta_text


CALL = ["{", '"func_name": ', '"weather", "location": "New York"', "}"]
THOUGHT = ["<start>", " ", "world", " ", "</stop>", "!"]


@pytest.fixture
def tokenizer(folder) -> Tokenizer:
    return Tokenizer(folder)


def test_parsers_may_come_from_an_iterator(tokenizer) -> None:
    recorder = Recorder()

    class Silent(TextParserStreamer):
        def write(self, message):
            return RUNNING

    Silent(tokenizer, iter([recorder]))._write("a")
    assert recorder.calls == [("a", [])]


def test_several_parsers_extend_one_message(tokenizer) -> None:
    streamer = Streamer(tokenizer, ToolCall(), Marked())
    parts = ["Hello", *THOUGHT, *CALL]
    assert [streamer._write(part) for part in parts] == [RUNNING] * len(parts)
    assert streamer.get_parsed_message() == {
        "content": "".join(parts),
        "reasoning_content": " world ",
        "tool_calls": [{"func_name": "weather", "location": "New York"}],
    }


def test_a_parsers_status_ends_the_stream(tokenizer) -> None:
    streamer = Streamer(tokenizer, ToolCall(StreamingStatus.TOOL_CALL_STOP), Marked())
    streamer.answer = STOP
    assert streamer._write("Hello") is STOP
    statuses = [streamer._write(part) for part in CALL]
    assert statuses[-1] is StreamingStatus.TOOL_CALL_STOP, "it precedes the status of write"
    assert "reasoning_content" not in streamer.get_parsed_message()


def test_later_parsers_do_not_read_a_text_that_ends_the_stream(tokenizer) -> None:
    recorder = Recorder()
    streamer = Streamer(tokenizer, ToolCall(StreamingStatus.CANCEL), recorder)
    for part in CALL:
        streamer._write(part)
    assert [text for text, _ in recorder.calls] == CALL[:-1]
    assert streamer.get_parsed_message()["content"] == "".join(CALL)


def test_content_is_what_the_last_parser_returns(tokenizer) -> None:
    class Louder(IncrementalParser):
        def parse(self, delta_message, delta_text, delta_tokens=None):
            delta_message["content"] = "is replaced"
            return delta_text + "!"

    streamer = Streamer(tokenizer, Louder(), Louder())
    streamer._write("a")
    assert streamer.messages == [{"content": "a!!"}]


def test_tokens_are_decoded_and_passed_with_their_text(tokenizer) -> None:
    recorder = Recorder()
    streamer = Streamer(tokenizer, recorder)
    first, second = ids_of("é"), ids_of("a")
    for token in [BOS, *first, BOS, *second]:
        assert streamer._write([token]) is RUNNING
    assert recorder.calls == [("é", [BOS, *first, BOS])], "the last text waits"
    streamer.end()
    assert recorder.calls[1:] == [("a", second)]


@given(st.text(max_size=20).filter(is_plain), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_all_tokens_and_texts_arrive_once(tmp_path_factory, text, size) -> None:
    recorder = Recorder()
    streamer = Streamer(Tokenizer(write_toy_folder(tmp_path_factory.mktemp("toy"))), recorder)
    ids = [BOS, *ids_of(text)]
    for at in range(0, len(ids), size):
        streamer._write(ids[at : at + size])
    streamer.end()
    assert streamer.get_parsed_message() == {"content": text}
    assert [token for _, tokens in recorder.calls for token in tokens] == (ids if text else [])


def test_special_tokens_may_mark_reasoning(tokenizer) -> None:
    class Between(IncrementalParser):
        inside = False

        def parse(self, delta_message, delta_text, delta_tokens=None):
            marked = BOS in (delta_tokens or ())
            if marked and self.inside:
                self.inside = False
                return ""
            if marked or self.inside:
                self.inside = True
                delta_message["reasoning_content"] = delta_text
                return ""
            return delta_text

    streamer = Streamer(tokenizer, Between())
    text = "<bos>\nOkay, the user is asking for 2 + 1.<bos> The answer is 3."
    for token in tokenizer.encode(text, add_special_tokens=False).input_ids.data[0].tolist():
        streamer._write([token])
    streamer.end()
    assert streamer.joined("reasoning_content") == "\nOkay, the user is asking for 2 + 1"
    assert streamer.joined("content") == " The answer is 3."


def test_reasoning_of_streamed_tokens_is_found(tokenizer) -> None:
    streamer = Streamer(tokenizer, Phi4ReasoningIncrementalParser())
    text = "<think>\nTwo plus one.</think>\n\nThe answer is 3."
    for token in ids_of(text):
        streamer._write([token])
    streamer.end()
    expected = {"content": text, "reasoning_content": "\nTwo plus one."}
    assert streamer.get_parsed_message() == expected
    assert {name: streamer.joined(name) for name in expected} == expected


def test_reset_forgets_the_message_and_resets_the_parsers(tokenizer) -> None:
    streamer = Streamer(tokenizer, Phi4ReasoningIncrementalParser())
    for _ in range(2):
        streamer.reset()
        assert streamer.get_parsed_message() == {"content": ""}
        streamer._write("<think>a</think>b")
        assert streamer.get_parsed_message()["reasoning_content"] == "a"


def test_the_message_is_a_copy(tokenizer) -> None:
    streamer = Streamer(tokenizer, ToolCall())
    for part in CALL:
        streamer._write(part)
    streamer.messages[-1]["tool_calls"].clear()
    streamer.get_parsed_message()["tool_calls"].clear()
    assert len(streamer.get_parsed_message()["tool_calls"]) == 1


def test_texts_and_dictionaries_are_joined_but_other_entries_are_not_repeated(tokenizer) -> None:
    class Adds(IncrementalParser):
        value: Any = None

        def parse(self, delta_message, delta_text, delta_tokens=None):
            delta_message["entry"] = self.value
            return delta_text

    parser = Adds()
    streamer = Streamer(tokenizer, parser)
    parser.value = {"a": "x", "b": {"c": "y"}}
    streamer._write("1")
    streamer._write("2")
    assert streamer.get_parsed_message()["entry"] == {"a": "xx", "b": {"c": "yy"}}
    parser.value = [1]
    with pytest.raises(ParseError, match=r"message\['entry'\] = .* cannot be appended"):
        streamer._write("3")


def test_wrong_parsers_and_return_values_are_errors(tokenizer) -> None:
    with pytest.raises(ConfigError, match="pass a list of IncrementalParser"):
        TextParserStreamer(tokenizer, [ReasoningParser()])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="pass a list of IncrementalParser"):
        TextParserStreamer(tokenizer, Recorder())  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match=r"no method write\(message\)"):
        TextParserStreamer(tokenizer)._write("a")
    streamer = Streamer(tokenizer)
    for answer, error in ((None, TypeError), ("go", ConfigError)):
        streamer.answer = answer
        with pytest.raises(error):
            streamer._write("a")

    class Silent(IncrementalParser):
        def parse(self, delta_message, delta_text, delta_tokens=None):
            return None

    with pytest.raises(TypeError, match=r"Silent\.parse must return a text, not None"):
        Streamer(tokenizer, Silent())._write("a")
