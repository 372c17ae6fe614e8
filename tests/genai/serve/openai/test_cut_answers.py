"""Answers with calls that the limit of tokens or a stop text cuts: the part is no text."""

from __future__ import annotations

from typing import Any

import pytest
from tests.genai.serve.openai.conftest import HERMES, LLAMA, Serve
from tests.genai.serve.openai.test_chat import chat
from tests.genai.serve.openai.test_responses import respond
from tests.genai.serve.openai.test_tools import ASK, CLOCKED, PLAIN, TAGGED, calls_of

from genai_layer import GenerationFinishReason
from genai_layer.serve.engine.contract import Chunk
from genai_layer.serve.openai.answers import Answer
from genai_layer.serve.openai.tools import calls
from genai_layer.serve.openai.tools.calls import JsonReader, TaggedReader
from genai_layer.testing.toy import TEMPLATE

TOOLS: Any = [
    {"type": "function", "name": name, "parameters": None, "strict": False}
    for name in ("weather", "clock")
]
AFTER_TEXT = f"Wait.\n{TAGGED}\n{CLOCKED}"
CASES = {
    "tags": (HERMES, AFTER_TEXT, len("Wait.\n<tool_call>\n{"), "Wait.", 0),
    "begin of a tag": (HERMES, AFTER_TEXT, len("Wait.\n<tool_c"), "Wait.", 0),
    "generic": (TEMPLATE, TAGGED, 30, "", 0),
    "second call": (HERMES, AFTER_TEXT, len(AFTER_TEXT) - 5, "Wait.", 1),
    "json": (LLAMA, PLAIN, 12, "", 0),
    "forced json": (HERMES.replace("tool_call>", "call>"), PLAIN, 12, "", 0),
    "text": (HERMES, AFTER_TEXT, 3, "Wai", 0),
    "text in json": (LLAMA, '{"city": "Ås"}', 9, '{"city": ', 0),
}
EACH = pytest.mark.parametrize(
    ("template", "script", "limit", "text", "count"), CASES.values(), ids=CASES
)


def values_of(template: str) -> dict[str, Any]:
    """Return the choice of tools: forced if calls of the template are not read otherwise."""
    return {"tool_choice": "required"} if "<call>" in template else {}


@EACH
def test_a_cut_call_is_no_content_of_a_chat(
    serve: Serve, template: str, script: str, limit: int, text: str, count: int
) -> None:
    client, _ = serve(script, template=template)
    values = {**ASK, **values_of(template), "max_tokens": limit}
    (choice,) = chat(client, **values).choices
    assert choice.finish_reason == "length"
    assert (choice.message.content or "", len(choice.message.tool_calls or ())) == (text, count)
    choices = [chunk.choices[0] for chunk in chat(client, **values, stream=True)]
    assert "".join(one.delta.content or "" for one in choices) == text
    assert sum(len(one.delta.tool_calls or ()) for one in choices) == count
    assert choices[-1].finish_reason == "length"


@EACH
def test_a_cut_call_is_no_text_of_a_response(
    serve: Serve, template: str, script: str, limit: int, text: str, count: int
) -> None:
    client, _ = serve(script, template=template)
    values = {"tools": TOOLS, **values_of(template), "max_output_tokens": limit}
    whole = respond(client, **values)
    *_, last = streamed = [*respond(client, **values, stream=True)]
    assert last.type == "response.incomplete"
    for reply in (whole, last.response):
        assert (reply.output_text, reply.status) == (text, "incomplete")
        assert reply.incomplete_details.reason == "max_output_tokens"
        assert sum(item.type == "function_call" for item in reply.output) == count
    deltas = [one.delta for one in streamed if one.type == "response.output_text.delta"]
    assert "".join(deltas) == text


@pytest.mark.parametrize("reason", ["LENGTH", "CAPACITY"])
def test_a_full_cache_cuts_as_the_limit_of_tokens_does(reason: str) -> None:
    answer = Answer(TaggedReader(calls.HERMES, {"weather"}), frozenset())
    step = answer.add(Chunk(0, (), (), TAGGED[:20], GenerationFinishReason[reason]))
    assert (step.parts, step.finish) == ([], "length")


def test_the_text_before_a_cut_is_that_beside_the_calls() -> None:
    for at in range(len(AFTER_TEXT)):
        reader = TaggedReader(calls.HERMES, {"weather", "clock"})
        parts = [*reader.feed(AFTER_TEXT[:at]), *reader.end(cut=[""])]
        texts = "".join(part for part in parts if isinstance(part, str))
        assert texts.rstrip() == "Wait."[:at], at


def test_every_beginning_of_a_call_as_json_is_dropped() -> None:
    for at in range(len(PLAIN)):
        reader = JsonReader(calls.LLAMA, {"weather", "clock"})
        assert [*reader.feed(PLAIN[:at]), *reader.end(cut=[""])] == [], at


@pytest.mark.parametrize("text", ['{"city": "a', '{"name": "rain', '{"name": "clocks", "x', "{}"])
def test_json_that_begins_no_call_stays_text_at_a_cut(text: str) -> None:
    reader = JsonReader(calls.LLAMA, {"weather", "clock"})
    assert [*reader.feed(text), *reader.end(cut=[""])] == [text]


STOPS = ["\n", "arguments", "tool", ">", "Å"]


@pytest.mark.parametrize("stop", STOPS)
def test_no_stop_text_is_searched_in_a_forced_call(serve: Serve, stop: str) -> None:
    client, _ = serve(TAGGED, template=HERMES)
    values = {"tool_choice": {"type": "function", "function": {"name": "weather"}}, "stop": [stop]}
    (choice,) = chat(client, **ASK, **values).choices
    assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")
    assert calls_of(choice.message) == [("weather", {"city": "Ås"})]


@pytest.mark.parametrize(("template", "script"), [(HERMES, TAGGED), (LLAMA, PLAIN)])
@pytest.mark.parametrize("stop", [*STOPS, "e"])
def test_a_call_that_a_stop_text_cuts_is_no_content(
    serve: Serve, template: str, script: str, stop: str
) -> None:
    client, _ = serve(script, template=template)
    (choice,) = chat(client, **ASK, stop=stop).choices
    whole = stop not in script
    assert not choice.message.content
    assert len(choice.message.tool_calls or ()) == whole
    assert choice.finish_reason == ("tool_calls" if whole else "stop")


@pytest.mark.parametrize("tail", ["<", "<to", "{"])
def test_text_that_a_stop_text_keeps_from_being_a_call_stays(serve: Serve, tail: str) -> None:
    client, _ = serve(f"a {tail}b", template=HERMES)
    assert chat(client, **ASK, stop="b").choices[0].message.content == f"a {tail}"
