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
        self.calls: list[list[int]] = []
        self.ended = 0
        self.answer = answer

    def write(self, token):
        self.calls.append(token)
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


def test_a_streamer_base_receives_lists_of_one_token_and_the_end(speaks) -> None:
    recorder = Recorder()
    speaks("hey").generate("?", streamer=recorder)
    assert recorder.calls == [[token] for token in (*ids_of("hey"), EOS)]
    assert recorder.ended == 1


def test_a_streamer_base_receives_held_tokens_together(speaks) -> None:
    recorder = Recorder()
    speaks("hey, u").generate("?", streamer=recorder, stop_strings={"ey!"})
    assert recorder.calls[:3] == [ids_of("h"), ids_of("ey,"), ids_of(" ")]


def test_a_streamer_base_never_receives_tokens_of_an_excluded_stop_string(speaks) -> None:
    recorder = Recorder()
    speaks("hey, u").generate("?", streamer=recorder, stop_strings={", "})
    assert recorder.calls == [[token] for token in ids_of("hey")]


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
        (2, Reason.NONE, "h"),
        (np.int64(1), Reason.STOP, "h"),
        (np.True_, Reason.STOP, "h"),
        (np.False_, Reason.STOP, "hey"),
    ],
)
def test_a_callables_return_value_sets_the_finish_reason(speaks, answer, reason, text) -> None:
    results = speaks("hey").generate(["?"], streamer=lambda _: answer)
    assert (results.texts, results.finish_reasons) == ([text], [reason])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, Reason.STOP),
        (0.0, Reason.STOP),
        (StreamingStatus.CANCEL, Reason.NONE),
        (StreamingStatus.TOOL_CALL_STOP, Reason.TOOL_CALL),
        (True, Reason.STOP),
        (2, Reason.STOP),
        (3, Reason.STOP),
        (-1, Reason.STOP),
        (1.5, Reason.STOP),
    ],
)
def test_numbers_of_a_text_streamers_callback_are_flags(folder, speaks, answer, reason) -> None:
    """The same numbers are statuses if a callable returns them; openvino_genai does the same."""
    streamer = TextStreamer(Tokenizer(folder), lambda _: answer)
    results = speaks("hey").generate(["?"], streamer=streamer)
    goes_on = answer is None or answer == 0.0
    assert (results.texts, results.finish_reasons) == (["hey" if goes_on else "h"], [reason])


def test_statuses_print_as_in_openvino_genai() -> None:
    assert f"{StreamingStatus.STOP} {Reason.LENGTH}" == (
        "StreamingStatus.STOP GenerationFinishReason.LENGTH"
    )
    assert repr([Reason.STOP]) == "[<GenerationFinishReason.STOP: 1>]"


@pytest.mark.parametrize("answer", ["go", 1.5, -1, []])
def test_an_invalid_return_value_is_an_error(speaks, answer) -> None:
    with pytest.raises(ConfigError, match="a streamer returned"):
        speaks("hey").generate("?", streamer=lambda _: answer)


def test_a_streamer_without_status_or_of_another_kind_is_an_error(folder, speaks) -> None:
    with pytest.raises(ConfigError, match=r"a streamer returned \[\]"):
        speaks("hey").generate("?", streamer=TextStreamer(Tokenizer(folder), lambda _: []))
    with pytest.raises(NotImplementedError, match=r"StreamerBase has no method write\(token\)"):
        speaks("hey").generate("?", streamer=StreamerBase())
    with pytest.raises(TypeError, match="must return"):
        speaks("hey").generate("?", streamer=Recorder(None))
    with pytest.raises(ConfigError, match="streamer = 3: pass"):
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
    assert streamer.write(ids[0]) is StreamingStatus.RUNNING
    assert streamer.write(ids[1:]) is StreamingStatus.RUNNING
    streamer.end()
    assert "".join(pieces) == "a😀b"
    pieces.clear()
    speaks("hey").generate("?", streamer=streamer)
    assert "".join(pieces) == "hey"


@pytest.mark.parametrize(
    "tokens", [ids_of("hey"), tuple(ids_of("hey")), np.array(ids_of("hey")), np.int64(9)]
)
def test_a_text_streamer_accepts_tokens_of_any_integer_type(folder, tokens) -> None:
    pieces: list[str] = []
    TextStreamer(Tokenizer(folder), pieces.append).write(tokens)
    assert len(pieces) == 1, "tokens given together are passed on together"


@pytest.mark.parametrize("tokens", ["h", 1.5, [1.5]])
def test_a_text_streamer_rejects_other_types(folder, tokens) -> None:
    with pytest.raises(TypeError):
        TextStreamer(Tokenizer(folder), lambda _: None).write(tokens)


@pytest.mark.parametrize(("skip", "text"), [(True, "hey"), (False, "hey<eos>")])
def test_a_text_streamer_may_keep_special_tokens(folder, speaks, skip, text) -> None:
    pieces: list[str] = []
    params = {"skip_special_tokens": skip}
    streamer = TextStreamer(Tokenizer(folder), pieces.append, params)
    assert speaks("hey").generate("?", streamer=streamer) == "hey"
    assert "".join(pieces) == text


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"add_special_tokens": False}, "'add_special_tokens' is not supported; only skip_special"),
        ({"skip_special_tokens": "no"}, "skip_special_tokens = 'no': must be True or False"),
    ],
)
def test_other_detokenization_params_are_rejected(folder, params, message) -> None:
    with pytest.raises(ConfigError, match=message):
        TextStreamer(Tokenizer(folder), print, detokenization_params=params)


def test_a_text_streamer_with_its_own_write_receives_tokens(folder, speaks) -> None:
    calls: list[object] = []

    class Counting(TextStreamer):
        def write(self, token):
            calls.append(token)
            return super().write(token)

    pieces: list[str] = []
    speaks("hey").generate("?", streamer=Counting(Tokenizer(folder), pieces.append))
    assert calls == [[token] for token in (*ids_of("hey"), EOS)]
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
