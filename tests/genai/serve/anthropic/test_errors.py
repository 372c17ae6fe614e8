"""Errors in Anthropic's form, and the key in its header."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.anthropic.conftest import HELLO, KEY, VALIDATORS, Ask, Serve

from genai_layer import GenAIError
from genai_layer.serve.errors import NoRoom, TimedOut


@pytest.mark.parametrize(
    ("values", "begin"),
    [
        ({"messages": []}, "messages: "),
        ({"messages": [*HELLO, {"role": "assistant", "content": "It is"}]}, "messages.1: "),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages.0.content.0"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0.type: "),
        ({"max_tokens": None}, "max_tokens: "),
        ({"max_tokens": 0}, "max_tokens: "),
        ({"temperature": 1.5}, "temperature: "),
        ({"temperature": 1e-60}, "temperature: is 0 in f32"),
        ({"top_k": 0}, "top_k: "),
        ({"stop_sequences": [""]}, "stop_sequences.0: "),
        ({"stop_sequences": ["a"] * 257}, "stop_sequences: "),
        ({"container": "c"}, "container: is not supported"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers: is not supported"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_"),
        ({"tool_choice": {"type": "any"}}, "tool_choice: "),
        ({"stream_options": {}}, "stream_options: is unknown"),
        ({"messages": [[]] * 17_000}, "messages: more than 16384 objects and lists"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_fields_that_are_not_supported_are_rejected_by_name(
    serve: Serve, ask: Ask, values: Any, begin: str
) -> None:
    serve("x")
    error = ask(status=400, **values)["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(begin)


def test_the_type_of_an_error_follows_from_its_status(serve: Serve, ask: Ask) -> None:
    assert ask(status=404, model="claude")["error"]["type"] == "not_found_error"
    serve("x").room = 0
    assert ask(status=429)["error"]["type"] == "rate_limit_error"
    for failure, status, kind in (
        (GenAIError("it failed"), 500, "api_error"),
        (NoRoom("no room"), 503, "overloaded_error"),
        (TimedOut("too slow"), 504, "timeout_error"),
    ):
        serve("\0").failure = failure
        error = ask(status=status)["error"]
        assert error == {"type": kind, "message": str(failure)}


def test_the_client_learns_that_conversations_are_not_stored(serve: Serve, ask: Ask) -> None:
    """The tool runner begins with a thread, and goes on without one after this error."""
    serve("x")
    error = ask(status=400, thread={"type": "create"})["error"]
    assert error["message"].startswith("thread: conversations are not stored; send all messages")
    assert error["details"] == {"error_code": "thread_unsupported_request"}


def test_a_defect_is_reported_without_its_details(
    serve: Serve, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    serve("\0").failure = ZeroDivisionError("secret")
    error = ask(status=500)["error"]
    assert error == {"type": "api_error", "message": "the server failed; its log has the reason"}
    assert "secret" in caplog.text


def test_headers_of_an_error_stay(serve: Serve, http: TestClient) -> None:
    serve("x").room = 0
    body = {"model": "toy", "max_tokens": 1, "messages": HELLO}
    reply = http.post("/v1/messages", json=body)
    assert reply.headers["retry-after"] == "3"
    assert int(reply.headers["content-length"]) == len(reply.content)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": KEY, "anthropic-version": "2023-06-01"}, 200),
        ({"x-api-key": "other"}, 401),
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({}, 401),
    ],
    ids=str,
)
def test_the_key_has_a_header_of_its_own(
    serve: Serve, http: TestClient, headers: dict[str, str], status: int
) -> None:
    serve("x")
    body = {"model": "toy", "max_tokens": 1, "messages": HELLO}
    client = TestClient(http.app)
    reply = client.post("/v1/messages", json=body, headers=headers)
    assert reply.status_code == status
    if status == 401:
        VALIDATORS["error"].validate(reply.json())
        assert reply.json()["error"]["type"] == "authentication_error"


def test_errors_before_the_routes_have_the_form_too(http: TestClient) -> None:
    for method, content, status, kind in (
        ("POST", b"x" * (1 << 17), 413, "request_too_large"),
        ("POST", b"{", 400, "invalid_request_error"),
        ("GET", b"", 405, "invalid_request_error"),
    ):
        reply = http.request(method, "/v1/messages", content=content)
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, kind)
    assert http.get("/v1/messages/batches").json()["type"] == "error"
    assert "type" not in http.get("/v1/nothing").json()
