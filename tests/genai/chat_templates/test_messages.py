"""Messages that a chat template does not support are rendered in a form that it does."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.templates import CHATS, TEMPLATES

from genai_layer import TemplateError, Tokenizer
from genai_layer.chat_templates.generic_tools import report_generic_tools
from genai_layer.chat_templates.rendering import render
from genai_layer.chat_templates.support import TemplateSupport, support_of
from genai_layer.testing.toy import write_toy_folder

TOOL = {"type": "function", "function": {"name": "fn", "parameters": {"type": "object"}}}
CALL: dict[str, Any] = {"id": "1", "function": {"name": "fn", "arguments": {"a": "é"}}}
CALLED = '<tool_call>\n{"name": "fn", "arguments": {"a": "é"}}\n</tool_call>'


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(write_toy_folder(tmp_path_factory.mktemp("toy")))


def apply(tokenizer: Tokenizer, template: str, messages: Any, **options: Any) -> str:
    return tokenizer.apply_chat_template(messages, True, chat_template=template, **options)


@pytest.mark.parametrize(
    ("template", "texts", "system", "tools"),
    [
        ("plain", True, True, False),
        ("tools", True, True, True),
        ("parts", False, True, False),
        ("texts and parts", True, True, False),
        ("no system", True, False, False),
        ("dropped system", True, False, False),
        ("parts without system", False, False, False),
        ("first characters", True, True, False),
    ],
)
def test_the_support_of_a_template_is_found(template, texts, system, tools) -> None:
    assert support_of(TEMPLATES[template], ()) == TemplateSupport(texts, system, tools)


def test_a_template_may_need_its_special_tokens() -> None:
    template = "{{ bos_token + '!' }}" + TEMPLATES["no system"]
    assert not support_of(template, (("bos_token", "<s>"),)).system


@pytest.mark.parametrize("template", ["no system", "dropped system"])
@pytest.mark.parametrize(
    ("chat", "prompt"),
    [
        ("SU", "<user>S0\nU1"),
        ("SSU", "<user>S0\nS1\nU2"),
        ("S", "<user>S0"),
        ("SAU", "<user>S0<assistant>A1<user>U2"),
        ("USU", "<user>U0<user>S1\nU2"),
        ("US", "<user>U0<user>S1"),
        ("SUAU", "<user>S0\nU1<assistant>A2<user>U3"),
    ],
)
def test_system_messages_begin_the_next_user_message(tokenizer, template, chat, prompt) -> None:
    assert apply(tokenizer, TEMPLATES[template], CHATS[chat]) == prompt


def test_system_messages_join_parts(tokenizer: Tokenizer) -> None:
    template = TEMPLATES["parts without system"]
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert apply(tokenizer, template, [*CHATS["S"], {"role": "user", "content": parts}]) == (
        "<user>[S0][a][b]"
    )


def test_a_template_that_reads_parts_gets_parts(tokenizer: Tokenizer) -> None:
    assert apply(tokenizer, TEMPLATES["parts"], CHATS["SUAU"]) == (
        "<system>[S0]<user>[U1]<assistant>[A2]<user>[U3]"
    )
    assert apply(tokenizer, TEMPLATES["texts and parts"], CHATS["U"]) == "<user>U0"


@pytest.mark.parametrize("template", TEMPLATES)
def test_tools_reach_the_prompt_of_each_template(tokenizer: Tokenizer, template: str) -> None:
    prompt = apply(tokenizer, TEMPLATES[template], CHATS["SU"], tools=[TOOL])
    assert template == "first characters" or json.dumps(TOOL) in prompt
    described = "<tool_call>" in prompt
    assert described is (template not in ("tools", "first characters"))
    assert not described or prompt.index("S0") < prompt.index("<tool_call>") < prompt.index("U1")


def test_calls_and_results_reach_the_prompt_of_a_template_without_tools(tokenizer) -> None:
    chat = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "wait", "tool_calls": [CALL, CALL]},
        {"role": "tool", "content": "R"},
        {"role": "tool", "content": [{"type": "text", "text": "Q"}]},
    ]
    assert apply(tokenizer, TEMPLATES["plain"], chat) == (
        f"<user>U<assistant>wait\n{CALLED}\n{CALLED}<user>"
        "<tool_response>\nR\n</tool_response>\n<tool_response>\nQ\n</tool_response>"
    )
    chat[1]["tool_calls"] = [{"function": {"name": "fn", "arguments": '{"a": "é"}'}}]
    assert f"wait\n{CALLED}<user>" in apply(tokenizer, TEMPLATES["plain"], chat)


def prompt_of_call(tokenizer: Tokenizer, call: Any) -> str:
    return apply(tokenizer, TEMPLATES["plain"], [{"role": "assistant", "tool_calls": [call]}])


@pytest.mark.parametrize("beside", [False, True], ids=["in function", "beside the id"])
@pytest.mark.parametrize(
    "arguments",
    [{}, *({"arguments": one} for one in ("", " \n", "null", " null ", None, {}, "{}"))],
)
def test_an_earlier_call_may_have_no_arguments(tokenizer, arguments, beside) -> None:
    function = {"name": "fn", **arguments}
    call = function if beside else {"function": function}
    assert prompt_of_call(tokenizer, call) == (
        '<assistant><tool_call>\n{"name": "fn", "arguments": {}}\n</tool_call>'
    )


def test_arguments_of_an_earlier_call_stay_as_written(tokenizer: Tokenizer) -> None:
    arguments = '{"a":1.50, "b": "\\u003c/s>"}'
    assert f'"arguments": {arguments}}}' in prompt_of_call(
        tokenizer, {"function": {"name": "fn", "arguments": f" {arguments}\n"}}
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (0, "0"),
        (False, "false"),
        (None, ""),
        ("", ""),
        ({"a": "é"}, '{"a": "é"}'),
        (["a", {"type": "text", "text": "b"}], "a\nb"),
        ([0, None, {"a": None}], '0\n\n{"a": null}'),
    ],
)
def test_results_that_are_not_text_are_json(tokenizer: Tokenizer, content: Any, text: str) -> None:
    chat = [{"role": "tool", "content": content}]
    assert apply(tokenizer, TEMPLATES["plain"], chat) == (
        f"<user><tool_response>\n{text}\n</tool_response>"
    )


FORMS: dict[str, Any] = {
    "tool_calls: must be a list": "f",
    "tool_calls[1]: has no function with a name": [CALL, {"function": {"arguments": {}}}],
    "tool_calls[0]: has no function with a name": ["f"],
    "tool_calls[0]: the arguments are no JSON object": [{"name": "f", "arguments": "{"}],
    "tool_calls[2]: the arguments are no JSON object": [CALL, CALL, {"name": "f", "arguments": 1}],
    "tool_calls[0]: is not JSON: Out of range float": [
        {"name": "f", "arguments": {"a": float("nan")}}
    ],
}


@pytest.mark.parametrize("message", FORMS)
def test_an_error_in_a_generic_call_names_its_place(tokenizer: Tokenizer, message: str) -> None:
    chat = [*CHATS["U"], {"role": "assistant", "tool_calls": FORMS[message]}]
    with pytest.raises(TemplateError) as caught:
        apply(tokenizer, TEMPLATES["plain"], chat)
    assert str(caught.value).startswith(f"messages[1].{message}")
    assert "set_chat_template" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tool_that_is_no_json_is_named_in_the_generic_form(tokenizer: Tokenizer) -> None:
    with pytest.raises(TemplateError, match=r"^tools\[1\]: is not JSON: Object of type set"):
        apply(tokenizer, TEMPLATES["plain"], CHATS["U"], tools=[TOOL, {"name": {1, 2}}])


def test_generic_tools_are_reported_once(tokenizer, caplog) -> None:
    report_generic_tools.cache_clear()
    for _ in range(3):
        apply(tokenizer, TEMPLATES["plain"], CHATS["U"], tools=[TOOL])
        apply(tokenizer, TEMPLATES["tools"], CHATS["U"], tools=[TOOL])
    (record,) = caplog.records
    assert "does not show tools: a system message describes them" in record.getMessage()


@pytest.mark.parametrize("tools", [[{"name": {1, 2}}], [{"name": object()}]])
@pytest.mark.parametrize("template", ["plain", "tools"])
def test_a_tool_that_is_no_json_is_an_error(tokenizer, template, tools) -> None:
    with pytest.raises(TemplateError, match="not JSON serializable"):
        apply(tokenizer, TEMPLATES[template], CHATS["U"], tools=tools)


@pytest.mark.parametrize("as_property", [False, True])
def test_a_template_that_is_set_is_also_that_for_tools(tmp_path: Path, as_property: bool) -> None:
    named = [
        {"name": name, "template": f"{name}{{{{ tools }}}}"} for name in ("default", "tool_use")
    ]
    tokenizer = Tokenizer(write_toy_folder(tmp_path, chat_template=named))
    assert tokenizer.template_for(True) == "tool_use{{ tools }}"
    if as_property:
        tokenizer.chat_template = "mine{{ tools }}"
    else:
        tokenizer.set_chat_template("mine{{ tools }}")
    assert tokenizer.template_for(True) == tokenizer.chat_template == "mine{{ tools }}"
    assert tokenizer.apply_chat_template(CHATS["U"], True, tools=[]) == "mineNone"


def test_named_templates_without_a_default_one_are_for_tools_alone(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "t{{ tools }}"}, {"name": "rag", "template": "r"}]
    tokenizer = Tokenizer(write_toy_folder(tmp_path, chat_template=named))
    assert tokenizer.apply_chat_template(CHATS["U"], True, tools=[TOOL]).startswith("t[")
    with pytest.raises(TemplateError, match="the model has no chat template"):
        tokenizer.apply_chat_template(CHATS["U"], True)


def test_supported_messages_are_rendered_unchanged(tokenizer: Tokenizer) -> None:
    template = TEMPLATES["tools"]
    for chat in CHATS.values():
        expected = render(template, chat, True, {"tools": [TOOL]})
        assert apply(tokenizer, template, chat, tools=[TOOL]) == expected


VALUES = st.recursive(
    st.none()
    | st.integers()
    | st.sampled_from(["system", "user", "tool", "a", "text", "function"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "text", "function", "arguments"]), inner, max_size=3
        )
    ),
    max_leaves=4,
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"]) | VALUES
MESSAGES = st.fixed_dictionaries(
    {}, optional={"role": ROLES, "content": VALUES, "tool_calls": VALUES}
)


@given(
    template=st.sampled_from([*TEMPLATES.values()]),
    chat=st.lists(MESSAGES, max_size=3),
    tools=st.lists(st.dictionaries(st.sampled_from(["type", "function"]), VALUES), max_size=2),
)
@settings(max_examples=100, deadline=None)
def test_any_messages_and_tools_give_a_text_or_a_template_error(
    tokenizer: Tokenizer, template: str, chat: list[Any], tools: list[Any]
) -> None:
    with suppress(TemplateError):
        assert apply(tokenizer, template, chat, tools=tools)
