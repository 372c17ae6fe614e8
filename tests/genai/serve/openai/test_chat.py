"""/v1/chat/completions with the official client."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.genai.serve.openai.conftest import Serve
from tests.genai.serve.openai.scripted import ScriptedModel

from genai_layer import GenerationConfig, __version__

HELLO: Any = [{"role": "user", "content": "Hello"}]


def chat(client: openai.OpenAI, **values: Any) -> Any:
    return client.chat.completions.create(**{"model": "toy", "messages": HELLO, **values})


def config_of(model: ScriptedModel) -> GenerationConfig:
    return model.submitted[-1].config


def test_an_answer_has_text_usage_and_the_version(serve: Serve) -> None:
    client, model = serve("wörld")
    reply = chat(client)
    (choice,) = reply.choices
    assert (choice.message.content, choice.finish_reason) == ("wörld", "stop")
    assert (choice.message.role, choice.logprobs) == ("assistant", None)
    count = len(model.submitted[0].prompt)
    assert reply.usage.prompt_tokens == count
    assert reply.usage.completion_tokens == len("wörld".encode()) + 1
    assert reply.usage.total_tokens == count + reply.usage.completion_tokens
    assert reply.usage.prompt_tokens_details.cached_tokens == 2
    assert (reply.model, reply.system_fingerprint) == ("toy", f"genai_layer-{__version__}")


def test_the_chat_template_wraps_messages(serve: Serve) -> None:
    client, model = serve("yes")
    chat(
        client,
        messages=[
            {"role": "developer", "content": "Be short."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}],
            },
            {"role": "assistant", "content": None},
        ],
    )
    assert model.prompt() == "<|system|>Be short.<|user|>A\nB<|assistant|><|assistant|>"


NAMED = (
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.name }}:{{ m.reasoning_content }}:{{ m.content }}"
    "{% endfor %}{{ enable_thinking }} {{ reasoning_effort }} {{ style }}"
)
"""Template that shows all that a request may set."""


def test_templates_read_names_and_reasoning_of_messages(serve: Serve) -> None:
    client, model = serve("yes", template=NAMED)
    answer = {"role": "assistant", "content": "b", "reasoning_content": "since"}
    result = {"role": "tool", "name": "f", "tool_call_id": "1", "content": "c"}
    chat(client, messages=[*HELLO, answer, result])
    assert model.prompt() == "<|user|>::Hello<|assistant|>:since:b<|tool|>f::c  "


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, "  "),
        ({"reasoning_effort": "low"}, "True low "),
        ({"reasoning_effort": "none"}, "False none "),
        ({"chat_template_kwargs": {"style": "x", "enable_thinking": False}}, "False  x"),
        (
            {"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": False}},
            "False high ",
        ),
    ],
    ids=str,
)
def test_templates_read_the_effort_and_other_variables(serve: Serve, values, shown) -> None:
    client, model = serve("yes", template=NAMED)
    chat(client, extra_body=values)
    assert model.prompt() == f"<|user|>::Hello{shown}"


def test_special_tokens_in_messages_are_text(serve: Serve) -> None:
    client, model = serve("yes")
    chat(client, messages=[{"role": "user", "content": "<|system|>"}])
    assert len(model.submitted[0].prompt) == 1 + len("<|system|>") + 1


def test_a_stream_has_the_same_text(serve: Serve) -> None:
    client, _ = serve("wörld")
    chunks = [*chat(client, stream=True, stream_options={"include_usage": True})]
    *parts, last = chunks
    assert parts[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in parts) == "wörld"
    assert [chunk.choices[0].finish_reason for chunk in parts[-2:]] == [None, "stop"]
    assert (last.choices, last.usage.completion_tokens) == ([], 7)
    assert len({chunk.id for chunk in chunks}) == 1


def test_n_choices_run_side_by_side_with_seeds_of_their_own(serve: Serve) -> None:
    client, model = serve("one", "two", "three")
    reply = chat(client, n=3, seed=7, temperature=1)
    assert [choice.message.content for choice in reply.choices] == ["one", "two", "three"]
    assert [one.config.rng_seed for one in model.submitted] == [7, 8, 9]
    assert reply.usage.prompt_tokens == len(model.submitted[0].prompt)
    model.submitted.clear()
    texts = ["", "", ""]
    for chunk in chat(client, n=3, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == ["one", "two", "three"]


def test_log_probabilities_have_bytes_and_alternatives(serve: Serve) -> None:
    client, _ = serve("hö")
    tokens = chat(client, logprobs=True, top_logprobs=2).choices[0].logprobs.content
    assert [token.token for token in tokens] == ["h", "\ufffd", "\ufffd"]
    assert bytes(tokens[1].bytes + tokens[2].bytes).decode() == "ö"
    assert [token.logprob for token in tokens] == [-0.5] * 3
    assert [len(token.top_logprobs) for token in tokens] == [2] * 3
    streamed = [
        token
        for chunk in chat(client, logprobs=True, top_logprobs=2, stream=True)
        if chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content
    ]
    assert streamed == tokens
    tokens = chat(client, logprobs=True).choices[0].logprobs.content
    assert [token.top_logprobs for token in tokens] == [[]] * 3


PARAMETERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"do_sample": False}),
    ({"temperature": 0}, {"do_sample": False, "temperature": 1.0}),
    ({"temperature": 0.5}, {"do_sample": True, "temperature": 0.5}),
    ({"top_p": 0.5}, {"do_sample": True, "top_p": 0.5}),
    ({"stop": "a"}, {"stop_strings": {"a"}}),
    ({"stop": ["a", "bc"]}, {"stop_strings": {"a", "bc"}}),
    ({"stop": list("abcdef")}, {"stop_strings": set("abcdef")}),
    ({"extra_body": {"top_k": 5}}, {"do_sample": True, "top_k": 5}),
    ({"extra_body": {"top_k": -1, "min_p": 0.5}}, {"top_k": 0, "min_p": 0.5, "do_sample": True}),
    ({"extra_body": {"min_p": 0.5}, "temperature": 0}, {"do_sample": False}),
    ({"extra_body": {"repetition_penalty": 1.5}}, {"repetition_penalty": 1.5}),
    ({"extra_body": {"ignore_eos": True}, "max_tokens": 2}, {"ignore_eos": True}),
    ({"logit_bias": {"10": -5, "0": 1}}, {"logit_bias": {10: -5.0, 0: 1.0}}),
    ({"max_tokens": 3}, {"max_new_tokens": 3}),
    ({"max_completion_tokens": 3}, {"max_new_tokens": 3}),
    ({"seed": -1}, {"rng_seed": (1 << 32) - 1}),
    (
        {"presence_penalty": 1, "frequency_penalty": -1},
        {"presence_penalty": 1.0, "frequency_penalty": -1.0},
    ),
    ({"logprobs": True}, {"logprobs": 1}),
    ({"logprobs": True, "top_logprobs": 1}, {"logprobs": 2}),
    ({"logprobs": True, "top_logprobs": 20}, {"logprobs": 20}),
]


@pytest.mark.parametrize(
    ("given", "expected"), PARAMETERS, ids=[str(given) for given, _ in PARAMETERS]
)
def test_parameters_reach_the_generation(serve: Serve, given, expected) -> None:
    client, model = serve("yes")
    chat(client, **given)
    assert {name: getattr(config_of(model), name) for name in expected} == expected


def test_each_request_without_a_seed_draws_anew(serve: Serve) -> None:
    client, model = serve("yes")
    chat(client)
    chat(client)
    assert len({one.config.rng_seed for one in model.submitted}) == 2


def test_the_limit_of_tokens_ends_a_choice(serve: Serve) -> None:
    client, _ = serve("hello")
    (choice,) = chat(client, max_tokens=2).choices
    assert (choice.message.content, choice.finish_reason) == ("he", "length")


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ({"type": "json_object"}, {"type": "object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "array"}}},
            {"type": "array"},
        ),
    ],
    ids=str,
)
def test_a_format_becomes_a_grammar(serve: Serve, kind, schema) -> None:
    client, model = serve("{}")
    chat(client, response_format=kind)
    structured = config_of(model).structured_output_config
    assert structured is not None
    found = structured.to_format()
    assert found["json_schema"].pop("x-guidance")["whitespace_flexible"] is False
    assert found == {"type": "json_schema", "json_schema": schema}


def test_a_model_without_a_template_has_no_chats(serve: Serve) -> None:
    client, model = serve("yes")
    model.tokenizer.set_chat_template("")
    with pytest.raises(openai.BadRequestError, match="no chat template; use /v1/completions"):
        chat(client)


def test_messages_that_the_template_rejects_are_the_clients_error(serve: Serve) -> None:
    template = "{{ raise_exception('roles must alternate') }}"
    client, _ = serve("yes", template=template)
    with pytest.raises(
        openai.BadRequestError, match="line 1, fails on these messages: roles must alternate"
    ):
        chat(client)
