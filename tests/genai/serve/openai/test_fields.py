"""Fields of bodies: accepted without effect, rejected by name, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.openai.conftest import Serve

from genai_layer.serve.openai.schemas.chat import ChatRequest
from genai_layer.serve.openai.schemas.responses import ResponseRequest
from genai_layer.serve.openai.validation import rejection

CHAT: Any = {"model": "toy", "messages": [{"role": "user", "content": "a"}]}


def error_of(http: TestClient, body: Any, path: str = "chat/completions") -> Any:
    reply = http.post(
        f"/v1/{path}", **({"content": body} if isinstance(body, bytes) else {"json": body})
    )
    assert reply.status_code == 400, reply.text
    return reply.json()["error"]


@pytest.mark.parametrize(
    "values",
    [
        {"user": "me", "metadata": {"a": "b"}, "service_tier": "auto", "safety_identifier": "x"},
        {"prompt_cache_key": "x", "modalities": ["text"], "store": False, "logit_bias": {}},
        {"stop": None, "n": None, "stream": None, "tools": None, "reasoning_effort": None},
        {"top_k": None, "min_p": None, "ignore_eos": None, "chat_template_kwargs": None},
    ],
    ids=str,
)
def test_fields_without_effect_are_accepted(serve: Serve, http: TestClient, values: Any) -> None:
    serve("x")
    reply = http.post("/v1/chat/completions", json=CHAT | values)
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize(
    ("values", "param", "text"),
    [
        ({"reasoning_effort": "huge"}, "reasoning_effort", "should be 'none', 'minimal'"),
        ({"chat_template_kwargs": {"tools": []}}, "chat_template_kwargs", "must not have tools"),
        ({"functions": []}, "functions", "is not supported"),
        ({"modalities": ["audio"]}, "modalities.0", "should be 'text'"),
        ({"store": True}, "store", "should be False"),
        ({"logit_bias": {"1": 101}}, "logit_bias.1", "less than or equal to 100"),
        ({"logit_bias": {"a": 1}}, "logit_bias", "should match pattern"),
        ({"top_k": -2}, "top_k", "greater than or equal to -1"),
        ({"min_p": 1}, "min_p", "less than 1"),
        ({"repetition_penalty": 0}, "repetition_penalty", "should be greater than 0"),
        ({"repetition_penalty": 1e-46}, "repetition_penalty", "is 0 in f32"),
        ({"use_beam_search": True}, "use_beam_search", "is unknown; remove it"),
        ({"n": 0}, "n", "greater than or equal to 1"),
        ({"n": "2"}, "n", "valid integer"),
        ({"temperature": 2.5}, "temperature", "less than or equal to 2"),
        ({"temperature": 1e-46}, "temperature", "is 0 in f32; send 0 for the likeliest token"),
        ({"stop": ["a"] * 257}, "stop", "at most 256 items"),
        ({"stop": ""}, "stop", "at least 1 character"),
        ({"messages": []}, "messages", "at least 1 item"),
        ({"messages": [{"role": "critic"}]}, "messages.0", "'critic'"),
        ({"messages": [{"role": "user"}]}, "messages.0.content", "is missing; add it"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content", "valid string"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages.0.content.0",
            "should be 'text'",
        ),
        ({"tools": [{"type": "function"}]}, "tools.0.function", "is missing; add it"),
        ({"tools": [{"name": "f"}]}, "tools.0", "is missing; add it"),
        ({"response_format": {"type": "grammar"}}, "response_format", "'grammar'"),
        ({"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens", "differs from"),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {
                                "id": "1",
                                "type": "function",
                                "function": {"name": "f", "arguments": "[]"},
                            }
                        ],
                    }
                ]
            },
            "messages.0.tool_calls.0.function.arguments",
            "no JSON object",
        ),
    ],
    ids=str,
)
def test_a_wrong_field_is_named(serve: Serve, http: TestClient, values, param, text) -> None:
    serve("x")
    error = error_of(http, CHAT | values)
    assert text in error["message"]
    assert error["param"].startswith(param)
    assert error["type"] == "invalid_request_error"


LONE = "a\ud800b"
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
TOOL: Any = {"type": "function", "function": FUNCTION}
SCHEMA = {"type": "json_schema", "name": "s", "schema": {"description": LONE}}
ASKED: Any = {
    "responses": {"model": "toy", "input": "a"},
    "chat/completions": CHAT,
    "completions": {"model": "toy", "prompt": "a"},
    "embeddings": {"model": "embed", "input": "a"},
    "rerank": {"model": "rank", "query": "a", "documents": ["a"]},
}


@pytest.mark.parametrize(
    ("path", "values", "param"),
    [
        ("responses", {"metadata": {"a": LONE}}, "metadata.a"),
        ("responses", {"metadata": {LONE: "a"}}, "metadata"),
        ("responses", {"metadata": {LONE: 5}}, "metadata"),
        ("responses", {"instructions": LONE}, "instructions"),
        ("responses", {"input": [{"role": "user", "content": LONE}]}, "input.0.content"),
        (
            "responses",
            {"tools": [{"type": "function", **FUNCTION, "description": LONE}]},
            "tools.0",
        ),
        ("responses", {"tools": [{"type": "function", "name": LONE}]}, "tools.0.name"),
        ("responses", {"tool_choice": LONE}, "tool_choice"),
        ("responses", {"text": {"format": SCHEMA}}, "text.format.schema"),
        ("responses", {"text": {"format": {"type": LONE}}}, "text.format"),
        ("responses", {"user": {"a": [LONE]}}, "user"),
        ("responses", {"user": {LONE: 1}}, "user"),
        ("responses", {LONE: 1}, ""),
        ("chat/completions", {"metadata": {"a": LONE}}, "metadata"),
        ("chat/completions", {"messages": [{"role": LONE, "content": "a"}]}, "messages.0"),
        ("chat/completions", {"stop": ["a", LONE]}, "stop.1"),
        (
            "chat/completions",
            {"tools": [{"type": "function", "function": {"name": LONE}}]},
            "tools",
        ),
        ("completions", {"prompt": ["a", LONE]}, "prompt.1"),
        ("embeddings", {"input": [LONE]}, "input.0"),
        ("rerank", {"query": LONE}, "query"),
        ("rerank", {"documents": [{"text": LONE}]}, "documents.0.text"),
    ],
    ids=ascii,
)
def test_a_text_that_is_no_unicode_is_the_clients_error(
    serve: Serve, http: TestClient, path: str, values: Any, param: str
) -> None:
    serve("x")
    body = json.dumps(ASKED[path] | values).encode()
    reply = http.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400, reply.text
    assert (reply.json()["error"]["param"] or "").startswith(param)


def test_a_field_is_named_as_it_stands_in_the_body(serve: Serve, http: TestClient) -> None:
    """A tool of a chat has the field "function", one of a response has the function's fields."""
    serve("x")
    reply = http.post("/v1/responses", json=ASKED["responses"] | {"tools": [TOOL]})
    assert reply.json()["error"]["message"] == "tools.0.name: is missing; add it"
    error = error_of(http, CHAT | {"tools": [TOOL | {"name": "f"}]})
    assert error["message"] == "tools.0.name: is unknown; remove it"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [70, 400])
def test_the_depth_of_a_schema_is_bounded(serve: Serve, http: TestClient, levels: int) -> None:
    serve("x")
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": nested(levels)}}
    assert "at most 64 levels" in error_of(http, CHAT | {"response_format": form})["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"a": ' * 5000,
        b'{"model": "toy", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "\\ud800", "messages": [{"role": "user", "content": "a"}]}',
        b'{"model": "toy", "messages": [{"role": "user", "content": "a"}], "temperature": NaN}',
        b'{"model": "toy", "messages": [{"role": "user", "content": "a"}], "\\ud800": 1}',
        b'{"model": "toy", "messages": [{"role": "user", "content": "a"}], "seed": 1e999}',
        b"\xff\xfe",
    ],
    ids=repr,
)
def test_broken_bodies_are_the_clients_error(serve: Serve, http: TestClient, body: bytes) -> None:
    serve("x")
    for path in ("chat/completions", "completions", "responses", "embeddings", "rerank"):
        assert error_of(http, body, path)["message"]


def test_the_deepest_of_several_errors_is_reported() -> None:
    errors = [
        {"loc": ("body", "a", "str"), "type": "string_type", "msg": "Input should be a string"},
        {"loc": ("body", "a", "list[b]", 0, "c"), "type": "missing", "msg": "Field required"},
    ]
    found = rejection(errors, {"a": [{}]})
    assert (str(found), found.param) == ("a.0.c: is missing; add it", "a.0.c")


NUMBERS = [
    (path, name)
    for path, body in (("chat/completions", ChatRequest), ("responses", ResponseRequest))
    for name, field in body.model_fields.items()
    if "float" in str(field.annotation)
]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(("path", "name"), NUMBERS)
def test_numbers_are_finite(
    serve: Serve, http: TestClient, path: str, name: str, number: str
) -> None:
    serve("x")
    given = '"input": "a"' if path == "responses" else f'"messages": {json.dumps(CHAT["messages"])}'
    value = f'{{"1": {number}}}' if name == "logit_bias" else number
    body = f'{{"model": "toy", {given}, "{name}": {value}}}'
    reply = http.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert reply.json()["error"]["param"].startswith(name)
