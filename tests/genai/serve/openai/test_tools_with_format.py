"""Tools and a format in one request: the model calls a function, or answers in the format.

A named function is called exactly once.
"""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.genai.serve.openai.conftest import HERMES, LLAMA, Serve
from tests.genai.serve.openai.test_chat import HELLO, chat
from tests.genai.serve.openai.test_responses import respond
from tests.genai.serve.openai.test_tools import ASK, CLOCKED, TAGGED, accepts, calls_of

from genai_layer.testing.toy import TEMPLATE


class Report(BaseModel):
    """Weather in a city."""

    city: str
    degrees: int


class Clock(BaseModel):
    """Time of the day."""


OTHER = HERMES.replace("tool_call>", "call>")
"""Template with a form of calls that is not known."""
SCHEMA = {"name": "report", "schema": Report.model_json_schema(), "strict": True}
FORMAT: Any = {"response_format": {"type": "json_schema", "json_schema": SCHEMA}}
ANSWER = '{"city": "Ås", "degrees": 7}'
AS_LLAMA = '{"name": "clock", "parameters": {}}'
AS_JSON = '{"name": "clock", "arguments": {}}'
CALLS = {HERMES: CLOCKED, TEMPLATE: CLOCKED, LLAMA: AS_LLAMA, OTHER: AS_JSON}
"""Call of a function without arguments, in the form of each kind of template."""
EACH = pytest.mark.parametrize(
    "template", CALLS, ids=["hermes", "generic", "llama", "unknown form"]
)


@EACH
def test_the_model_calls_a_function_or_answers_in_the_format(serve: Serve, template: str) -> None:
    client, _ = serve(CALLS[template], ANSWER, template=template)
    tools = [openai.pydantic_function_tool(Clock, name="clock")]
    values: Any = {"tools": tools, "response_format": Report}
    ask = client.chat.completions.parse
    (called,) = ask(model="toy", messages=HELLO, **values).choices
    assert calls_of(called.message) == [("clock", {})]
    assert (called.finish_reason, called.message.content) == ("tool_calls", None)
    (answered,) = ask(model="toy", messages=HELLO, **values).choices
    assert answered.message.parsed == Report(city="Ås", degrees=7)
    assert (answered.finish_reason, answered.message.tool_calls) == ("stop", None)


@EACH
def test_the_grammar_accepts_a_call_or_the_format_and_nothing_else(
    serve: Serve, template: str
) -> None:
    client, model = serve("x", template=template)
    chat(client, **ASK, **FORMAT)
    call = CALLS[template]
    assert accepts(model, call)
    assert accepts(model, ANSWER)
    assert accepts(model, f"{call}\n{call}") is call.startswith("<")
    for wrong in ("It is 7.", f"{call}\n{ANSWER}", f"{ANSWER}\n{call}", '{"city": "Ås"}'):
        assert not accepts(model, wrong), wrong


def test_an_object_of_any_form_is_a_call_if_it_names_a_function(serve: Serve) -> None:
    client, _ = serve(AS_LLAMA, '{"name": "Ås"}', template=LLAMA)
    values: Any = {**ASK, "response_format": {"type": "json_object"}}
    called, answered = (chat(client, **values).choices[0].message for _ in range(2))
    assert calls_of(called) == [("clock", {})]
    assert (answered.content, answered.tool_calls) == ('{"name": "Ås"}', None)


@EACH
@pytest.mark.parametrize("choice", ["required", "clock"])
def test_a_forced_call_precedes_the_format(serve: Serve, template: str, choice: str) -> None:
    named = {"type": "function", "function": {"name": choice}}
    client, model = serve("x", template=template)
    chat(client, **ASK, **FORMAT, tool_choice=choice if choice == "required" else named)
    assert accepts(model, CALLS[template])
    assert not accepts(model, ANSWER)


def test_without_a_choice_of_tools_the_answer_has_the_format(serve: Serve) -> None:
    client, model = serve("x", template=HERMES)
    chat(client, **ASK, **FORMAT, tool_choice="none")
    assert accepts(model, ANSWER)
    assert not accepts(model, CLOCKED)


def test_strict_calls_need_no_tags_beside_a_format(serve: Serve) -> None:
    strict: Any = {"type": "function", "function": {"name": "clock", "strict": True}}
    client, model = serve("x", template=LLAMA)
    chat(client, tools=[strict], **FORMAT)
    assert accepts(model, AS_LLAMA)


def test_one_call_at_most_holds_beside_a_format(serve: Serve) -> None:
    client, model = serve("x", template=HERMES)
    chat(client, **ASK, **FORMAT, parallel_tool_calls=False)
    assert accepts(model, CLOCKED)
    assert not accepts(model, f"{CLOCKED}\n{CLOCKED}")


def test_a_response_has_a_call_or_the_format(serve: Serve) -> None:
    client, model = serve(TAGGED, ANSWER, template=HERMES)
    values: Any = {
        "tools": [{"type": "function", "name": "weather", "parameters": None, "strict": False}],
        "text": {"format": {"type": "json_schema", **SCHEMA}},
    }
    called, answered = respond(client, **values), respond(client, **values)
    assert [item.type for item in called.output] == ["function_call"]
    assert json.loads(answered.output_text) == {"city": "Ås", "degrees": 7}
    assert accepts(model, ANSWER)
    assert not accepts(model, "It is 7.")


@EACH
@pytest.mark.parametrize("parallel", [None, True, False])
def test_a_named_function_is_called_exactly_once(
    serve: Serve, template: str, parallel: bool | None
) -> None:
    named = {"type": "function", "function": {"name": "clock"}}
    client, model = serve("x", template=template)
    chat(client, **ASK, tool_choice=named, parallel_tool_calls=parallel)
    call = CALLS[template]
    assert accepts(model, call)
    for wrong in (f"{call}\n{call}", f"{call}{call}", "", "It is noon."):
        assert not accepts(model, wrong), wrong


def test_a_named_function_of_a_response_is_called_exactly_once(serve: Serve) -> None:
    tool: Any = {"type": "function", "name": "clock", "parameters": None, "strict": False}
    client, model = serve(CLOCKED, template=HERMES)
    respond(client, tools=[tool], tool_choice={"type": "function", "name": "clock"})
    assert accepts(model, CLOCKED)
    assert not accepts(model, f"{CLOCKED}\n{CLOCKED}")
