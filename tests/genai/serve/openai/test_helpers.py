"""Answers that clients send back as their helpers made them, with fields of their own."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from pydantic import BaseModel
from tests.genai.serve.openai.conftest import HERMES, Serve
from tests.genai.serve.openai.test_chat import HELLO, chat
from tests.genai.serve.openai.test_tools import ASK, TAGGED, calls_of


class weather(BaseModel):  # noqa: N801 (the name of the function)
    city: str


def parsed(client: openai.OpenAI) -> Any:
    tools = [openai.pydantic_function_tool(weather)]
    return client.chat.completions.parse(model="toy", messages=HELLO, tools=tools)


def collected(client: openai.OpenAI) -> Any:
    state = ChatCompletionStreamState()
    for chunk in chat(client, **ASK, stream=True):
        state.handle_chunk(chunk)
    return state.get_final_completion()


@pytest.mark.parametrize("helper", [parsed, collected])
@pytest.mark.parametrize("dump", [False, True])
def test_calls_from_a_helper_of_openai_return(serve: Serve, helper: Any, dump: bool) -> None:
    client, model = serve(TAGGED, "It rains.", template=HERMES)
    message = helper(client).choices[0].message
    assert calls_of(message) == [("weather", {"city": "Ås"})]
    answer = message.model_dump() if dump else message
    chat(client, messages=[*HELLO, answer], **ASK)
    assert '<tool_call>{"name": "weather", "arguments": {"city": "Ås"}}' in model.prompt()


def test_a_parsed_answer_returns(serve: Serve) -> None:
    client, model = serve('{"city": "a"}', "yes")
    reply = client.chat.completions.parse(model="toy", messages=HELLO, response_format=weather)
    message: Any = reply.choices[0].message
    assert message.parsed == weather(city="a")
    chat(client, messages=[*HELLO, message.model_dump(warnings=False)])
    assert '{"city": "a"}' in model.prompt()


def test_the_parts_of_a_streamed_call_return(serve: Serve) -> None:
    client, model = serve(TAGGED, "It rains.", template=HERMES)
    deltas = [chunk.choices[0].delta for chunk in chat(client, **ASK, stream=True)]
    calls = [call.model_dump() for one in deltas for call in one.tool_calls or ()]
    assert [call["index"] for call in calls] == [0]
    answer = {"role": "assistant", "content": None, "tool_calls": calls}
    chat(client, messages=[*HELLO, answer | {"provider_specific_fields": None}], **ASK)
    assert "Ås" in model.prompt()


def test_a_parsed_response_returns(serve: Serve) -> None:
    client, model = serve('{"city": "a"}', TAGGED, "yes", template=HERMES)
    text = client.responses.parse(model="toy", input="Hi", text_format=weather)
    tool: Any = {"type": "function", "name": "weather", "parameters": None, "strict": False}
    call = client.responses.parse(model="toy", input="Hi", tools=[tool])
    output = [*text.output, *call.output]
    items: Any = [one.model_dump(warnings=False, exclude_unset=True) for one in output]
    assert "parsed" in items[0]["content"][0]
    assert "parsed_arguments" in items[1]
    client.responses.create(model="toy", input=items)
    assert "Ås" in model.prompt()
