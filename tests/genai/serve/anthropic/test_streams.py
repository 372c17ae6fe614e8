"""Streamed messages: the events, in their order."""

from __future__ import annotations

from typing import Any

from tests.genai.serve.anthropic.conftest import Ask, Serve
from tests.genai.serve.anthropic.test_messages import CALL, WEATHER
from tests.genai.serve.openai.conftest import HERMES


def kinds(events: list[Any]) -> list[str]:
    return [one["type"].removeprefix("content_block_") for one in events]


def test_a_stream_describes_each_block(serve: Serve, stream: Ask) -> None:
    serve(f"ab{CALL}", template=HERMES)
    events = stream(tools=[WEATHER])
    said = ["start", "delta", "delta", "stop"]
    ending = ["message_delta", "message_stop"]
    assert kinds(events) == ["ping", "message_start", *said, "start", "delta", "stop", *ending]
    message, start, call = events[1]["message"], events[2], events[6]["content_block"]
    assert (message["content"], message["stop_reason"]) == ([], None)
    assert start["content_block"] == {"type": "text", "text": ""}
    assert [one["delta"]["text"] for one in events[3:5]] == ["a", "b"]
    assert (call["name"], call["input"], call["type"]) == ("weather", {}, "tool_use")
    delta = events[7]["delta"]
    assert delta == {"type": "input_json_delta", "partial_json": '{"city": "Ås"}'}
    assert [one["index"] for one in events[2:9]] == [0, 0, 0, 0, 1, 1, 1]
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_the_end_of_a_stream_has_the_counts_and_the_stop_sequence(
    serve: Serve, stream: Ask
) -> None:
    model = serve("heEND")
    events = stream(stop_sequences=["D"])
    assert events[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "D"}
    texts = [one["delta"]["text"] for one in events if one["type"] == "content_block_delta"]
    assert "".join(texts) == "heEN"
    usage = events[-2]["usage"]
    assert usage["input_tokens"] == len(model.submitted[0].prompt) - 2
    assert usage["output_tokens"] == 5


def test_a_message_starts_when_the_model_has_read_the_prompt(serve: Serve, stream: Ask) -> None:
    serve("\0")
    assert kinds(stream()) == ["ping", "error"]


def test_a_stream_ends_with_its_error(serve: Serve, stream: Ask) -> None:
    model = serve("ab\0")
    error = stream()[-1]["error"]
    assert error == {"type": "api_error", "message": "the device failed"}
    assert model.submitted[0].cancelled
