"""/v1/messages: conversations in, messages out; what arrives at the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from tests.genai.serve.anthropic.conftest import HELLO, Ask, Serve
from tests.genai.serve.openai.conftest import HERMES

from genai_layer.detokenizer import StopStrings
from genai_layer.npu import StaticLengths
from genai_layer.serve.anthropic.blocks import StopReader
from genai_layer.serve.openai.tools.calls import PlainReader

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
RECORDED = [
    (path.stem, request)
    for path in sorted(CLIENTS.glob("anthropic-*.json"))
    for request in json.loads(path.read_text())
]
WEATHER: Any = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Ås"}}\n</tool_call>'


def text(words: str, **values: Any) -> Any:
    return {"type": "text", "text": words, **values}


@pytest.mark.parametrize(("name", "request_"), RECORDED, ids=[name for name, _ in RECORDED])
def test_requests_of_the_official_client_are_answered(
    serve: Serve, http: TestClient, name: str, request_: Any
) -> None:
    serve("hello", template=HERMES)
    path = request_["path"] + ("?beta=true" if name == "anthropic-agent" else "")
    reply = http.request(
        request_["method"], path, json=request_["body"], headers=request_["headers"]
    )
    assert reply.status_code == 200, reply.text
    assert "error" not in reply.text


def test_a_message_has_text_and_counts_of_tokens(serve: Serve, ask: Ask) -> None:
    model = serve("wörld")
    found = ask(system="Be short.")
    assert model.prompt() == "<|system|>Be short.<|user|>Hello<|assistant|>"
    assert found["content"] == [text("wörld")]
    assert (found["stop_reason"], found["stop_sequence"]) == ("end_turn", None)
    usage = found["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == len(
        model.submitted[0].prompt
    )
    assert (usage["cache_read_input_tokens"], usage["output_tokens"]) == (2, 7)


def test_an_empty_answer_has_no_content(serve: Serve, ask: Ask) -> None:
    serve("")
    assert ask()["content"] == []


def test_the_limit_of_tokens_ends_a_message(serve: Serve, ask: Ask) -> None:
    serve("hello")
    found = ask(max_tokens=2)
    assert (found["content"], found["stop_reason"]) == ([text("he")], "max_tokens")


def test_parameters_reach_the_engine(serve: Serve, ask: Ask) -> None:
    model = serve("x")
    ask(temperature=0.5, top_p=0.9, top_k=7, max_tokens=3)
    config = model.submitted[-1].config
    assert (config.do_sample, config.temperature, config.top_k) == (True, 0.5, 7)
    assert (config.top_p, config.max_new_tokens) == (pytest.approx(0.9), 3)
    ask(top_k=7)
    assert model.submitted[-1].config.do_sample
    ask(top_k=7, temperature=0)
    assert not model.submitted[-1].config.do_sample


def test_the_stop_sequence_that_ends_a_message_is_named_and_cut(serve: Serve, ask: Ask) -> None:
    model = serve("heD", "he")
    found = ask(stop_sequences=["D", "END"])
    config = model.submitted[-1].config
    assert (config.stop_strings, config.include_stop_str_in_output) == ({"D", "END"}, True)
    assert found["content"] == [text("he")]
    assert (found["stop_reason"], found["stop_sequence"]) == ("stop_sequence", "D")
    found = ask(stop_sequences=["D"])
    assert (found["stop_reason"], found["stop_sequence"]) == ("end_turn", None)


@given(
    st.lists(st.text("abc", min_size=1, max_size=3), max_size=9),
    st.sets(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_the_reader_finds_what_the_engine_found(parts: list[str], stops: set[str]) -> None:
    """The engine with the stop sequence in its text, and without it, are the two sides."""
    ordered = tuple(sorted(stops))
    with_stop, without = StopStrings(ordered, include=True), StopStrings(ordered, include=False)
    reader = StopReader(PlainReader(), [*stops])
    read, expected = "", ""
    for part in parts:
        read += "".join(map(str, reader.feed(with_stop.feed(part))))
        expected += without.feed(part)
    assert read == expected
    assert (reader.found is not None) == without.found
    if reader.found:
        assert (expected + reader.found) == "".join(parts)[: len(expected + reader.found)]


def test_texts_of_one_role_are_one_message_and_reasoning_is_left_out(
    serve: Serve, ask: Ask
) -> None:
    model = serve("x", template=HERMES)
    cached = {"type": "ephemeral"}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Ås"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("rain")]}
    ask(
        system=[text("A.", cache_control=cached), text("B.")],
        messages=[
            {"role": "system", "content": "C."},
            {"role": "user", "content": [text("Rain"), text("today?", cache_control=cached)]},
            {"role": "user", "content": "Quick!"},
            {"role": "assistant", "content": [thought, text("I look."), use, use]},
            {"role": "user", "content": [result, result | {"content": None}, text("Well?")]},
        ],
    )
    call = '<tool_call>{"name": "weather", "arguments": {"city": "Ås"}}</tool_call>'
    assert model.prompt() == (
        "<|system|>A.\nB.\nC.<|user|>Rain\ntoday?\nQuick!"
        f"<|assistant|>I look.{call}{call}<|tool|>rain<|tool|><|user|>Well?<|assistant|>"
    )


def test_calls_of_tools_are_blocks_beside_text(serve: Serve, ask: Ask) -> None:
    model = serve(f"Wait.{CALL}", template=HERMES)
    found = ask(tools=[WEATHER | {"cache_control": {"type": "ephemeral"}}])
    said, call = found["content"]
    assert (said, found["stop_reason"]) == (text("Wait."), "tool_use")
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "weather", {"city": "Ås"})
    function = {"name": "weather", "description": None, "parameters": WEATHER["input_schema"]}
    shown = json.dumps([{"type": "function", "function": function}])
    assert model.prompt().startswith(f"<|system|>{shown} Write")


@pytest.mark.parametrize(
    ("choice", "forced", "offered"),
    [
        ({"type": "auto"}, False, True),
        ({"type": "any"}, True, True),
        ({"type": "tool", "name": "weather"}, True, True),
        ({"type": "none"}, False, False),
        ({"type": "auto", "disable_parallel_tool_use": True}, True, True),
    ],
    ids=str,
)
def test_choices_of_tools_become_grammars(
    serve: Serve, ask: Ask, choice: Any, forced: bool, offered: bool
) -> None:
    model = serve(CALL if offered else "x", template=HERMES)
    ask(tools=[WEATHER, WEATHER | {"name": "clock"}], tool_choice=choice)
    config = model.submitted[-1].config.structured_output_config
    assert (config is not None) == forced
    assert ("weather" in model.prompt()) == offered


def test_a_format_becomes_a_grammar(serve: Serve, ask: Ask) -> None:
    model = serve("[]")
    ask(output_config={"format": {"type": "json_schema", "schema": {"type": "array"}}})
    config = model.submitted[-1].config.structured_output_config
    assert config is not None
    assert config.to_format()["json_schema"]["type"] == "array"


def test_tokens_are_counted_as_a_message_reads_them(
    serve: Serve, http: TestClient, ask: Ask
) -> None:
    model = serve("x", template=HERMES)
    values: Any = {"model": "toy", "messages": HELLO, "system": "Be short.", "tools": [WEATHER]}
    found = http.post("/v1/messages/count_tokens", json=values).json()
    assert not model.submitted
    ask(**values)
    assert found == {"input_tokens": len(model.submitted[0].prompt)}
    error = ask("/v1/messages/count_tokens", 400, **values)["error"]
    assert error["message"] == "max_tokens: is unknown; remove it"


def test_tokens_of_a_prompt_that_is_too_long_are_counted(
    serve: Serve, http: TestClient, ask: Ask
) -> None:
    model = serve("x", template=HERMES)
    model.lengths = StaticLengths(8, 8)
    values: Any = {"messages": [{"role": "user", "content": "ab " * 9000}]}
    assert "the prompt has" in ask(status=400, **values)["error"]["message"]
    found = http.post("/v1/messages/count_tokens", json={"model": "toy", **values}).json()
    model.lengths = None
    ask(**values)
    assert found == {"input_tokens": len(model.submitted[0].prompt)}


@pytest.mark.parametrize("stop", ["\n", "arguments", "tool", ">"])
def test_a_stop_sequence_leaves_no_part_of_a_call(serve: Serve, ask: Ask, stop: str) -> None:
    serve(CALL, CALL, template=HERMES)
    values: Any = {"tools": [WEATHER], "stop_sequences": [stop]}
    forced = ask(**values, tool_choice={"type": "tool", "name": "weather"})
    assert ([one["type"] for one in forced["content"]], forced["stop_reason"]) == (
        ["tool_use"],
        "tool_use",
    )
    cut = ask(**values)
    assert (cut["content"], cut["stop_reason"]) == ([], "stop_sequence")
