"""/v1/responses with the official client."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from tests.genai.serve.openai.conftest import HERMES, Serve
from tests.genai.serve.openai.test_tools import CLOCKED, TAGGED

WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CLOCK: Any = {"type": "function", "name": "clock", "parameters": None, "strict": False}


def respond(client: openai.OpenAI, **values: Any) -> Any:
    return client.responses.create(**{"model": "toy", "input": "Hello", **values})


def test_a_response_has_a_message_and_repeats_the_parameters(serve: Serve) -> None:
    client, model = serve("wörld")
    reply = respond(client, instructions="Be short.", metadata={"a": "b"}, temperature=0.5)
    assert model.prompt() == "<|system|>Be short.<|user|>Hello<|assistant|>"
    assert (reply.output_text, reply.status, reply.error) == ("wörld", "completed", None)
    assert (reply.instructions, reply.metadata) == ("Be short.", {"a": "b"})
    assert (reply.temperature, reply.store, reply.tool_choice) == (0.5, False, "auto")
    assert reply.usage.input_tokens == len(model.submitted[0].prompt)
    assert reply.usage.input_tokens_details.cached_tokens == 2
    assert reply.usage.output_tokens == 7


def test_the_limit_of_tokens_makes_a_response_incomplete(serve: Serve) -> None:
    client, _ = serve("hello")
    reply = respond(client, max_output_tokens=2)
    assert (reply.output_text, reply.status) == ("he", "incomplete")
    assert reply.incomplete_details.reason == "max_output_tokens"
    assert reply.output[0].status == "incomplete"


def test_items_of_a_response_return_to_the_model(serve: Serve) -> None:
    client, model = serve(f"Wait.\n{TAGGED}{CLOCKED}", "yes", template=HERMES)
    given: Any = [{"role": "user", "content": [{"type": "input_text", "text": "Rain?"}]}]
    reply = respond(client, input=given, tools=[WEATHER, CLOCK])
    assert [item.type for item in reply.output] == ["message", "function_call", "function_call"]
    _, first, second = reply.output
    assert (first.name, json.loads(first.arguments)) == ("weather", {"city": "Ås"})
    given += [item.model_dump(exclude_unset=True) for item in reply.output]
    for call in (first, second):
        given.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
    respond(client, input=given, tools=[WEATHER, CLOCK])
    calls = [
        '<tool_call>{"name": "weather", "arguments": {"city": "Ås"}}</tool_call>',
        '<tool_call>{"name": "clock", "arguments": {}}</tool_call>',
    ]
    expected = f"<|user|>Rain?<|assistant|>Wait.{''.join(calls)}<|tool|>rain<|tool|>rain"
    assert expected in model.prompt()


def test_a_stream_describes_each_item(serve: Serve) -> None:
    client, _ = serve(f"ab{CLOCKED}cd", template=HERMES)
    events = [*respond(client, tools=[CLOCK], stream=True)]
    assert [event.sequence_number for event in events] == [*range(len(events))]
    kinds = [event.type.removeprefix("response.") for event in events]
    message = ["output_item.added", "content_part.added"] + ["output_text.delta"] * 2
    message += ["output_text.done", "content_part.done", "output_item.done"]
    call = ["output_item.added", "function_call_arguments.delta"]
    call += ["function_call_arguments.done", "output_item.done"]
    assert kinds == ["created", "in_progress", *message, *call, *message, "completed"]
    assert events[2].item.content == []
    assert events[0].response.output == []
    final = events[-1].response
    assert [item.type for item in final.output] == ["message", "function_call", "message"]
    assert [event.item for event in events if event.type.endswith("item.done")] == final.output
    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(texts) == "abcd"


def test_an_empty_answer_is_an_empty_message(serve: Serve) -> None:
    client, _ = serve("")
    assert respond(client).output[0].content[0].text == ""


def test_log_probabilities_are_a_part_of_the_text(serve: Serve) -> None:
    client, _ = serve("hö")
    include = ["message.output_text.logprobs"]
    reply = respond(client, include=include, top_logprobs=2)
    found = reply.output[0].content[0].logprobs
    assert [token.token for token in found] == ["h", "\ufffd", "\ufffd"]
    assert [len(token.top_logprobs) for token in found] == [2] * 3
    deltas = [
        token
        for event in respond(client, include=include, stream=True)
        if event.type == "response.output_text.delta"
        for token in event.logprobs
    ]
    assert len(deltas) == 3
    with pytest.raises(openai.BadRequestError, match="top_logprobs: needs include"):
        respond(client, top_logprobs=2)


def test_a_format_becomes_a_grammar(serve: Serve) -> None:
    client, model = serve("[]")
    form = {"type": "json_schema", "name": "a", "schema": {"type": "array"}, "strict": True}
    reply = respond(client, text={"format": form})
    assert reply.text.format.schema_ == {"type": "array"}
    structured = model.submitted[0].config.structured_output_config
    assert structured is not None
    assert structured.to_format()["json_schema"]["type"] == "array"


def test_parts_of_items_that_a_response_has_not_are_included_in_vain(serve: Serve) -> None:
    client, model = serve("x")
    reply = respond(client, include=["reasoning.encrypted_content", "file_search_call.results"])
    assert [item.type for item in reply.output] == ["message"]
    assert reply.output[0].content[0].logprobs == []
    assert model.submitted[0].config.logprobs == 0


def test_the_effort_of_reasoning_reaches_the_template(serve: Serve) -> None:
    template = "{{ messages[0].content }}{{ enable_thinking }} {{ reasoning_effort }}"
    client, model = serve("x", template=template)
    respond(client, input="a", reasoning={"effort": "minimal", "summary": "auto"})
    assert model.prompt() == "aTrue minimal"


@pytest.mark.parametrize(
    "values",
    [
        {"previous_response_id": "resp_1"},
        {"store": True},
        {"background": True},
        {"conversation": "conv_1"},
        {"truncation": "auto"},
        {"reasoning": {"effort": "huge"}},
        {"prompt": {"id": "p"}},
        {"max_tool_calls": 1},
        {"tools": [{"type": "web_search"}], "tool_choice": "required"},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        {"input": [{"type": "item_reference", "id": "x"}]},
        {"include": ["thoughts"]},
    ],
    ids=str,
)
def test_fields_that_are_not_supported_are_rejected_by_name(serve: Serve, values: Any) -> None:
    client, _ = serve("x")
    with pytest.raises(openai.BadRequestError) as caught:
        respond(client, **values)
    assert caught.value.param is not None
    assert caught.value.param.startswith([*values][-1])
