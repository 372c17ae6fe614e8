"""Calls of functions: choice of the form, grammars, and reading of texts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.genai.serve.openai.conftest import HERMES, LLAMA, Serve
from tests.genai.serve.openai.scripted import ScriptedModel
from tests.genai.serve.openai.test_chat import chat
from tokenizers import AddedToken

from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.serve.openai.tools import calls
from genai_layer.serve.openai.tools.calls import Call, JsonReader, Part, Reader, TaggedReader
from genai_layer.testing.toy import EOS, TEMPLATE, ids_of

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
CLOCK: Any = {"type": "function", "function": {"name": "clock"}}
ASK: Any = {"tools": [WEATHER, CLOCK]}

TAGGED = '<tool_call>\n{"name": "weather", "arguments": {"city": "Ås"}}\n</tool_call>'
CLOCKED = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
PLAIN = '{"name": "weather", "parameters": {"city": "Ås"}}'


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()]


def test_the_model_learns_of_tools_and_its_calls_are_returned(serve: Serve) -> None:
    client, model = serve(f"Let me see.\n{TAGGED}\n{CLOCKED}", template=HERMES)
    (choice,) = chat(client, **ASK).choices
    assert '"name": "weather"' in model.prompt()
    assert choice.message.content == "Let me see."
    assert calls_of(choice.message) == [("weather", {"city": "Ås"}), ("clock", {})]
    assert choice.finish_reason == "tool_calls"
    first, second = choice.message.tool_calls
    assert first.id != second.id
    assert model.submitted[0].config.structured_output_config is None


def test_a_stream_has_the_calls_as_deltas(serve: Serve) -> None:
    client, _ = serve(f"Wait <b>\n{TAGGED}\n{CLOCKED}", template=HERMES)
    text, calls, finish = "", [], None
    for chunk in chat(client, **ASK, stream=True):
        (choice,) = chunk.choices
        text += choice.delta.content or ""
        calls += choice.delta.tool_calls or []
        finish = choice.finish_reason or finish
    assert (text, finish) == ("Wait <b>", "tool_calls")
    assert [(call.index, call.function.name) for call in calls] == [(0, "weather"), (1, "clock")]
    assert json.loads(calls[0].function.arguments) == {"city": "Ås"}


def test_calls_of_llama_are_the_whole_text(serve: Serve) -> None:
    client, _ = serve(PLAIN, template=LLAMA)
    (choice,) = chat(client, **ASK).choices
    assert choice.message.content is None
    assert calls_of(choice.message) == [("weather", {"city": "Ås"})]


def test_results_of_calls_return_to_the_model(serve: Serve) -> None:
    client, model = serve(TAGGED, "It rains.", template=HERMES)
    asked: Any = [{"role": "user", "content": "Rain?"}]
    message = chat(client, messages=asked, **ASK).choices[0].message
    asked.append(message.model_dump(exclude_unset=True))
    asked.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"})
    chat(client, messages=asked, **ASK)
    call = '<tool_call>{"name": "weather", "arguments": {"city": "Ås"}}</tool_call>'
    assert f"Rain?<|assistant|>{call}<|tool|>rain<|assistant|>" in model.prompt()


def structured(serve: Serve, template: str, **values: Any) -> Any:
    client, model = serve("x", template=template)
    chat(client, **{**ASK, **values})
    config = model.submitted[0].config.structured_output_config
    return None if config is None else config.to_format()


@pytest.mark.parametrize("choice", ["auto", None, "none"])
def test_free_choices_have_no_grammar(serve: Serve, choice: Any) -> None:
    assert structured(serve, HERMES, tool_choice=choice) is None


def test_no_choice_keeps_tools_from_the_model(serve: Serve) -> None:
    client, model = serve(TAGGED, template=HERMES)
    message = chat(client, **ASK, tool_choice="none").choices[0].message
    assert (message.tool_calls, message.content) == (None, TAGGED)
    assert "weather" not in model.prompt()


@pytest.mark.parametrize("parallel", [True, False])
def test_required_calls_have_a_grammar_of_tags(serve: Serve, parallel: bool) -> None:
    found = structured(serve, HERMES, tool_choice="required", parallel_tool_calls=parallel)
    assert (found["type"], found["at_least_one"]) == ("tags_with_separator", True)
    assert found["stop_after_first"] is not parallel
    assert [tag["begin"] for tag in found["tags"]] == ["<tool_call>\n"] * 2


def test_a_named_call_has_the_grammar_of_its_function(serve: Serve) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    found = structured(serve, LLAMA, tool_choice=choice)
    begin, parameters, end = found["elements"]
    assert (begin["value"], end["value"]) == ('{"name": "weather", "parameters": ', "}")
    assert parameters["json_schema"].items() > SCHEMA.items()


def test_strict_calls_and_single_calls_have_a_grammar_after_the_tag(serve: Serve) -> None:
    strict = {"type": "function", "function": {**WEATHER["function"], "strict": True}}
    found = structured(serve, HERMES, tools=[strict])
    assert (found["type"], found["triggers"]) == ("triggered_tags", ["<tool_call>"])
    assert found["stop_after_first"] is False
    assert structured(serve, HERMES, parallel_tool_calls=False)["stop_after_first"] is True


def test_a_model_whose_template_shows_no_tools_learns_of_them_and_calls_them(serve: Serve) -> None:
    for choice in ("auto", "required"):
        client, model = serve(f"Wait. {CLOCKED}")
        message = chat(client, **ASK, tool_choice=choice).choices[0].message
        assert (message.content, calls_of(message)) == ("Wait.", [("clock", {})])
        assert '"name": "weather"' in model.prompt()
        assert "<tool_call>\n{" in model.prompt()


@pytest.mark.parametrize("choice", ["auto", None])
def test_generic_calls_have_a_grammar(serve: Serve, choice: Any) -> None:
    found = structured(serve, TEMPLATE, tool_choice=choice)
    assert (found["type"], found["triggers"]) == ("triggered_tags", ["<tool_call>"])
    assert found["stop_after_first"] is False


def test_a_chat_with_generic_calls_goes_on(serve: Serve) -> None:
    client, model = serve(CLOCKED, "It is noon.")
    asked: Any = [{"role": "user", "content": "Time?"}]
    message = chat(client, messages=asked, **ASK).choices[0].message
    asked.append(message.model_dump(exclude_unset=True))
    asked.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "noon"})
    chat(client, messages=asked)
    result = "<tool_response>\nnoon\n</tool_response>"
    assert f"<|user|>Time?<|assistant|>{CLOCKED}<|user|>{result}<|assistant|>" in model.prompt()


def test_the_template_for_tools_decides_the_form(serve: Serve) -> None:
    named = [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": HERMES}]
    client, model = serve(TAGGED, "hello", template=named)
    assert calls.form_of(model.tokenizer) is calls.HERMES
    assert calls_of(chat(client, **ASK).choices[0].message) == [("weather", {"city": "Ås"})]
    assert "Write <tool_call> tags." in model.prompt()
    chat(client)
    assert "Write" not in model.prompt()


def test_calls_in_an_unknown_form_stay_text(serve: Serve) -> None:
    text = "<call>weather</call>"
    client, _ = serve(text, template=HERMES.replace("tool_call>", "call>"))
    message = chat(client, **ASK).choices[0].message
    assert (message.content, message.tool_calls) == (text, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tools": [CLOCK, CLOCK]}, "two functions have the name clock"),
        ({"tools": None, "tool_choice": "required"}, "no function is among tools"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice: x is not among tools",
        ),
    ],
    ids=str,
)
def test_contradictions_are_rejected(serve: Serve, values: Any, message: str) -> None:
    client, _ = serve("x", template=HERMES)
    with pytest.raises(openai.BadRequestError, match=message):
        chat(client, **{**ASK, **values})


def test_strict_calls_need_tags_or_a_forced_choice(serve: Serve) -> None:
    client, _ = serve("x", template=LLAMA)
    strict = {"type": "function", "function": {**CLOCK["function"], "strict": True}}
    with pytest.raises(openai.BadRequestError, match="set tool_choice to required"):
        chat(client, tools=[strict])


@pytest.mark.parametrize(
    ("template", "form"),
    [
        (HERMES, calls.HERMES),
        (LLAMA, calls.LLAMA),
        (HERMES + "<function=", None),
        (HERMES + "<arg_key>", None),
        ("{{ tools }}", None),
        ("{{ messages[0].content }} has no tools", calls.GENERIC),
    ],
)
def test_the_form_follows_the_template(serve: Serve, template: str, form: Any) -> None:
    _, model = serve("x", template=template)
    assert calls.form_of(model.tokenizer) is form


def test_a_special_tag_has_no_text_to_be_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, model = serve("x", template=HERMES)
    token = AddedToken("<tool_call>", special=True)
    monkeypatch.setattr(type(model.tokenizer), "special_tokens", {300: token})
    assert calls.form_of(model.tokenizer) is None


def parts_of(reader: Reader, texts: list[str]) -> list[Part]:
    """Return the parts of texts, adjacent texts joined."""
    found: list[Part] = []
    for part in [part for text in texts for part in reader.feed(text)] + reader.end(cut=()):
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


def names_of(parts: list[Part]) -> list[Any]:
    return [part if isinstance(part, str) else (part.name, part.arguments) for part in parts]


BROKEN = '<tool_call>{"name": </tool_call>'
QUOTED = (
    '<tool_call>{"name": "clock", "arguments": {"a": "</tool_call> \\"<tool_call>"}}</tool_call>'
)
UNKNOWN = f'<tool_call>{{"name": "x", "arguments": {{"a": {json.dumps(CLOCKED)}}}}}</tool_call>'
READS = {
    f"a {QUOTED}{CLOCKED}": [
        "a",
        ("clock", '{"a": "</tool_call> \\"<tool_call>"}'),
        ("clock", "{}"),
    ],
    UNKNOWN: [UNKNOWN],
    f"Use <tool_call> tags: {CLOCKED}": ["Use <tool_call> tags:", ("clock", "{}")],
    f"<tool_call>{CLOCKED}": ["<tool_call>", ("clock", "{}")],
    f'<tool_call>{{"name": "x {CLOCKED}': ['<tool_call>{"name": "x', ("clock", "{}")],
    f'<tool_call>{{"a": 1}} x</tool_call>{CLOCKED}': [
        '<tool_call>{"a": 1} x</tool_call>',
        ("clock", "{}"),
    ],
    '<tool_call>{"name": "clock", "arguments": {"a": 1e999}}</tool_call>': [
        '<tool_call>{"name": "clock", "arguments": {"a": 1e999}}</tool_call>'
    ],
    "a b \n": ["a b \n"],
    f"a {CLOCKED}": ["a", ("clock", "{}")],
    f"{CLOCKED} \n {CLOCKED}\n": [("clock", "{}")] * 2,
    f"{CLOCKED} b": [("clock", "{}"), " b"],
    f"a {BROKEN} b": [f"a {BROKEN} b"],
    "a <tool_cal": ["a <tool_cal"],
    '<tool_call>{"name"': ['<tool_call>{"name"'],
    '<tool_call>{"name": "x", "arguments": {}}</tool_call>': [
        '<tool_call>{"name": "x", "arguments": {}}</tool_call>'
    ],
    "<tool_call>[]</tool_call>": ["<tool_call>[]</tool_call>"],
}


@given(text=st.sampled_from([*READS]), cuts=st.sets(st.integers(0, 90)))
def test_the_parts_do_not_depend_on_the_steps(text: str, cuts: set[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    steps = [text[a:b] for a, b in pairwise(places)]
    found = parts_of(TaggedReader(calls.HERMES, {"clock"}), steps)
    assert names_of(found) == READS[text]


MARKS = ["<tool_call>", "</tool_call>", "<tool_", "call>", "[CALL]", "[/CALL]", '"', "\\", "}", "]"]
TEXTS = st.lists(st.sampled_from([*MARKS, "a", " ", "é", "\n"]), max_size=5).map("".join)
VALUES = st.recursive(
    TEXTS
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), min_size=1, max_size=3)
TAGGED_FORMS = [
    calls.HERMES,
    calls.Form("parameters", "[CALL]", "[/CALL]"),
    calls.Form("a", "]", "}"),
]


@pytest.mark.parametrize("form", [*TAGGED_FORMS, calls.LLAMA], ids=lambda form: form.begin)
@given(
    given_arguments=ARGUMENTS,
    space=st.sampled_from(["", "\n"]),
    escaped=st.booleans(),
    data=st.data(),
)
@settings(max_examples=30, deadline=None)
def test_any_arguments_are_read_from_any_steps(
    form: calls.Form, given_arguments: list[Any], space: str, escaped: bool, data: st.DataObject
) -> None:
    several = given_arguments if form.begin else given_arguments[:1]
    bodies = [
        json.dumps({"name": "f", form.arguments: one}, ensure_ascii=escaped) for one in several
    ]
    text = "\n".join(f"{form.begin}{space}{body}{space}{form.end}" for body in bodies)
    cuts = data.draw(st.sets(st.integers(0, len(text)), max_size=12) | st.just({*range(len(text))}))
    steps = [text[a:b] for a, b in pairwise([0, *sorted(cuts), len(text)])]
    kind = TaggedReader if form.begin else JsonReader
    parts = parts_of(kind(form, {"f"}), steps)
    assert [part.name for part in parts if isinstance(part, Call)] == ["f"] * len(several)
    assert [json.loads(part.arguments) for part in parts if isinstance(part, Call)] == several


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "clock", "parameters": {}}', [("clock", "{}")]),
        (' {"name": "clock", "parameters": {"a": 1}} ', [("clock", '{"a": 1}')]),
        ('{"name": "clock", "parameters": {}} and', ['{"name": "clock", "parameters": {}} and']),
        ('{"name": "x", "parameters": {}}', ['{"name": "x", "parameters": {}}']),
        ('{"name": 1, "parameters": {}}', ['{"name": 1, "parameters": {}}']),
        ('{"name": "clock", "parameters": "a"}', ['{"name": "clock", "parameters": "a"}']),
        ("{a}", ["{a}"]),
        ("a {}", ["a {}"]),
        ("", []),
    ],
)
def test_a_call_is_the_whole_text_or_none(text: str, expected: list[Any]) -> None:
    for steps in ([text], [*text]):
        found = parts_of(JsonReader(calls.LLAMA, {"clock"}), steps)
        assert names_of(found) == expected
    assert Call("a", "{}").id != Call("a", "{}").id


ACCEPTED = [
    (HERMES, {"tool_choice": "required"}, [CLOCKED, f"{CLOCKED}\n{CLOCKED}"], ["a", "{"]),
    (
        HERMES,
        {"tool_choice": "required", "parallel_tool_calls": False},
        [CLOCKED],
        [f"{CLOCKED}\n{CLOCKED}", "a"],
    ),
    (
        HERMES,
        {"parallel_tool_calls": False},
        ["free text", f"text {CLOCKED}"],
        [f"{CLOCKED}\n{CLOCKED}", '<tool_call>\n{"name": "x'],
    ),
    (TEMPLATE, {"tool_choice": "required"}, [CLOCKED, f"{CLOCKED}\n{CLOCKED}"], ["a", "{"]),
    (
        TEMPLATE,
        {},
        ["text", f"text {CLOCKED}{CLOCKED}"],
        ['<tool_call>\n{"name": "x', "<tool_call>{"],
    ),
    (LLAMA, {"tool_choice": "required"}, ['{"name": "clock", "parameters": {}}'], ["a", '{"x']),
    (
        LLAMA,
        {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        ['{"name": "weather", "parameters": {"city": "x"}}'],
        ['{"name": "clock'],
    ),
]


@pytest.mark.parametrize(("template", "values", "right", "wrong"), ACCEPTED, ids=str)
def test_grammars_accept_what_readers_read(serve: Serve, template, values, right, wrong) -> None:
    client, model = serve("x", template=template)
    chat(client, **{**ASK, **values})
    for text in right + wrong:
        assert accepts(model, text) is (text in right), text


def accepts(model: ScriptedModel, text: str) -> bool:
    """Return whether the grammar of the last generation accepts a text as the whole answer."""
    config = model.submitted[-1].config
    constraint = GrammarCompiler(model.tokenizer).constraint(config, PerfMetrics())
    assert constraint is not None
    for token in [*ids_of(text), EOS]:
        mask = constraint.process(np.zeros(model.tokenizer.vocabulary_size, np.float32))
        if not np.isfinite(mask[token]):
            return False
        constraint.advance(token)
    return True


@pytest.mark.parametrize("arguments", ["", " ", "null", "{}"])
def test_an_earlier_call_may_have_no_arguments(serve: Serve, arguments: str) -> None:
    client, model = serve("ok", template=HERMES)
    call: Any = {"id": "1", "type": "function"}
    call["function"] = {"name": "clock", "arguments": arguments}
    turn: Any = {"role": "assistant", "content": None, "tool_calls": [call]}
    chat(client, messages=[{"role": "user", "content": "?"}, turn], **ASK)
    assert '{"name": "clock", "arguments": {}}' in model.prompt()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"a": ' * 65 + "1" + "}" * 65, "must have at most 64 levels"),
        ('{"a": ' + "[" * 500 + "]" * 500 + "}", "must have at most 64 levels"),
        ('{"a": "\\ud800"}', "has a lone surrogate; remove it"),
    ],
    ids=["objects", "lists", "surrogate"],
)
def test_the_arguments_of_an_earlier_call_are_bounded(
    serve: Serve, arguments: str, problem: str
) -> None:
    client, _ = serve("x", template=HERMES)
    call: Any = {"id": "1", "type": "function"}
    call["function"] = {"name": "clock", "arguments": arguments}
    turn: Any = {"role": "assistant", "content": None, "tool_calls": [call]}
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, messages=[{"role": "user", "content": "?"}, turn])
    place = "messages.1.tool_calls.0.function.arguments"
    assert (caught.value.param, caught.value.body["message"]) == (place, f"{place}: {problem}")
    item: Any = {"type": "function_call", "call_id": "1", "name": "f", "arguments": arguments}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="toy", input=[{"role": "user", "content": "?"}, item])
    assert caught.value.param == "input.1.arguments"


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"properties": None}, "properties = None: must be an object"),
        ({"properties": {"a": {"$ref": "#/b"}}}, "the reference #/b leads to no place"),
    ],
)
def test_parameters_that_no_grammar_follows_are_an_error_of_the_tool(
    serve: Serve, parameters: Any, reason: str, choice: Any
) -> None:
    client, _ = serve("x")
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, tools=[CLOCK, tool], tool_choice=choice)
    assert f"tools: f: parameters: {reason}" in caught.value.message
    assert "json_schema" not in caught.value.message
    assert caught.value.param == "tools"


def test_a_template_that_fails_on_tools_is_an_error_of_the_request(serve: Serve) -> None:
    template = "{% for k in tools[0].function.parameters.properties | dictsort %}{% endfor %}"
    template += "{{ messages[0].content }}{{ tools | tojson }}"
    client, _ = serve("x", template=f"\n{template}")
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": {"properties": None}}}
    with pytest.raises(openai.BadRequestError, match=r"line 2, fails .* AttributeError"):
        chat(client, tools=[tool])
