"""Streamers: their inputs, and the effect of their return values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import (
    ConfigError,
    GenerationFinishReason,
    StreamerBase,
    StreamingStatus,
    TextStreamer,
    Tokenizer,
)
from genai_layer.testing.toy import EOS, ids_of, is_plain, toy_pipeline, word_id, write_toy_folder

Reason = GenerationFinishReason


class Recorder(StreamerBase):
    """Streamer that records its calls."""

    def __init__(self, answer: object = StreamingStatus.RUNNING) -> None:
        self.tokens: list[int] = []
        self.ended = 0
        self.answer = answer

    def write(self, token):
        self.tokens.append(token)
        return self.answer

    def end(self) -> None:
        self.ended += 1


def test_chunks_joined_are_the_text(speaks) -> None:
    chunks: list[str] = []
    text = speaks("hey, 😀!").generate("?", streamer=chunks.append)
    assert "".join(chunks) == text == "hey, 😀!"
    assert "" not in chunks


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.characters(exclude_categories=["Cs"]), unique=True, min_size=1, max_size=12),
    st.sets(st.text("abc\n", min_size=1, max_size=2), max_size=2),
)
def test_chunks_joined_are_the_text_for_any_text(tmp_path_factory, letters, stops) -> None:
    ids = list(dict.fromkeys(ids_of("".join(letters))))
    pipe = toy_pipeline(tmp_path_factory.mktemp("toy"), ids)
    chunks: list[str] = []
    text = pipe.generate("?", streamer=chunks.append, stop_strings=stops, max_new_tokens=40)
    assert "".join(chunks) == text
    assert not any(stop in text for stop in stops)


def test_a_callable_never_receives_an_excluded_stop_string(speaks) -> None:
    chunks: list[str] = []
    pipe = speaks([*ids_of("a"), word_id("mach"), word_id("ines"), *ids_of("!")])
    text = pipe.generate("?", streamer=chunks.append, stop_strings={"machines"})
    assert "".join(chunks) == text == "a"


def test_a_streamer_base_receives_tokens_one_by_one_and_the_end(speaks) -> None:
    recorder = Recorder()
    speaks("hey").generate("?", streamer=recorder)
    assert recorder.tokens == [*ids_of("hey"), EOS]
    assert recorder.ended == 1


def test_a_streamer_base_never_receives_tokens_of_an_excluded_stop_string(speaks) -> None:
    recorder = Recorder()
    speaks("hey, u").generate("?", streamer=recorder, stop_strings={", "})
    assert recorder.tokens == ids_of("hey")


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (True, Reason.STOP, "h"),
        (StreamingStatus.STOP, Reason.STOP, "h"),
        (7, Reason.STOP, "h"),
        (StreamingStatus.CANCEL, Reason.NONE, "h"),
        (StreamingStatus.TOOL_CALL_STOP, Reason.TOOL_CALL, "h"),
        (None, Reason.STOP, "hey"),
        (False, Reason.STOP, "hey"),
        (0, Reason.STOP, "hey"),
    ],
)
def test_a_callables_return_value_sets_the_finish_reason(speaks, answer, reason, text) -> None:
    results = speaks("hey").generate(["?"], streamer=lambda _: answer)
    assert (results.texts, results.finish_reasons) == ([text], [reason])


def test_an_invalid_return_value_or_streamer_is_an_error(speaks) -> None:
    with pytest.raises(ConfigError, match="a streamer returned 'go'"):
        speaks("hey").generate("?", streamer=lambda _: "go")
    with pytest.raises(TypeError, match="must return"):
        speaks("hey").generate("?", streamer=Recorder(None))
    with pytest.raises(ConfigError, match="is not a streamer"):
        speaks("hey").generate("?", streamer=3)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_an_exception_in_a_callback_is_raised_and_the_pipeline_stays_usable(speaks, error) -> None:
    pipe = speaks("hey")

    def fail(_: str) -> None:
        raise error

    with pytest.raises(type(error)):
        pipe.generate("?", streamer=fail)
    assert pipe.generate("?") == "hey"


def test_a_text_streamer_works_alone_and_in_a_pipeline(folder, speaks) -> None:
    pieces: list[str] = []
    streamer = TextStreamer(Tokenizer(folder), pieces.append)
    ids = ids_of("a😀b")
    streamer.write(ids[0])
    streamer.write(ids[1:])
    streamer.end()
    assert "".join(pieces) == "a😀b"
    pieces.clear()
    speaks("hey").generate("?", streamer=streamer)
    assert "".join(pieces) == "hey"


@given(st.text(max_size=30).filter(is_plain), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_joined_texts_of_a_streamer_are_the_text(tmp_path_factory, text, size) -> None:
    tokenizer = Tokenizer(write_toy_folder(tmp_path_factory.mktemp("toy")))
    pieces: list[str] = []
    streamer = TextStreamer(tokenizer, pieces.append)
    ids = ids_of(text)
    for at in range(0, len(ids), size):
        streamer.write(ids[at : at + size])
    streamer.end()
    assert "".join(pieces) == text


def test_encoded_input_streams_text_too(speaks) -> None:
    chunks: list[str] = []
    speaks("hey").generate(np.array([[4]], np.int64), streamer=chunks.append)
    assert "".join(chunks) == "hey"
