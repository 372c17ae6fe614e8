"""Endings of requests other than success: rejections, failures, and clients that leave."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from fastapi import FastAPI
from tests.genai.serve.openai.conftest import Serve
from tests.genai.serve.openai.test_chat import HELLO, chat

from genai_layer.serve.openai.streams import EventStream


def test_an_unknown_model_is_not_found(serve: Serve) -> None:
    client, _ = serve("yes")
    with pytest.raises(openai.NotFoundError) as caught:
        chat(client, model="gpt-5")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_a_full_queue_cancels_the_choices_that_it_had_accepted(serve: Serve) -> None:
    client, model = serve("yes")
    model.room = 2
    with pytest.raises(openai.RateLimitError) as caught:
        chat(client, n=3)
    assert caught.value.response.headers["Retry-After"] == "3"
    assert [one.cancelled for one in model.submitted] == [True, True]


def test_more_choices_than_the_queue_holds_are_rejected(serve: Serve) -> None:
    client, model = serve("yes")
    with pytest.raises(openai.BadRequestError, match="n: the request has 9 choices"):
        chat(client, n=9)
    with pytest.raises(openai.BadRequestError, match="10 choices"):
        client.completions.create(model="toy", prompt=["a", "b"], n=5)
    assert not model.submitted


def test_a_failure_cancels_all_choices(serve: Serve) -> None:
    client, model = serve("ab\0", "abcdef")
    with pytest.raises(openai.InternalServerError, match="the device failed"):
        chat(client, n=2)
    assert [one.cancelled for one in model.submitted] == [True, True]


@pytest.mark.parametrize("kind", ["chats", "completions"])
def test_a_stream_reports_a_failure(serve: Serve, kind: str) -> None:
    client, model = serve("ab\0")
    if kind == "chats":
        stream = chat(client, stream=True)
    else:
        stream = client.completions.create(model="toy", prompt="a", stream=True)
    with pytest.raises(openai.APIError, match="the device failed"):
        list(stream)
    assert model.submitted[0].cancelled


def test_a_stream_reports_a_defect_without_its_details(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    client, model = serve("ab\0")
    model.failure = ZeroDivisionError("secret")
    with pytest.raises(openai.APIError, match="the server failed; its log has the reason"):
        list(chat(client, stream=True))
    assert "secret" in caplog.text


def test_a_typed_stream_ends_with_a_failed_response(serve: Serve) -> None:
    client, _ = serve("ab\0")
    events = [*client.responses.create(model="toy", input="a", stream=True)]
    error, failed = events[-2:]
    assert (error.type, error.message) == ("error", "the device failed")
    assert (failed.type, failed.response.status) == ("response.failed", "failed")
    assert failed.response.error.message == "the device failed"
    assert failed.response.output == []


@pytest.mark.parametrize("values", [{}, {"stream": True}, {"n": 2, "stream": True}], ids=str)
def test_a_cancelled_request_cancels_its_generations(
    serve: Serve, app: FastAPI, values: Any
) -> None:
    """The server cancels the application when a client disconnects."""
    _, model = serve("ab\1")
    body = json.dumps({"model": "toy", "messages": HELLO, **values}).encode()
    scope: Any = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(_: Any) -> None:
        pass

    async def leave() -> None:
        running = asyncio.ensure_future(app(scope, receive, send))
        while len(model.submitted) < values.get("n", 1):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert not model.submitted[0].cancelled
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(leave())
    assert all(one.cancelled for one in model.submitted)


def test_a_stream_that_nobody_begins_to_read_is_released() -> None:
    released: list[str] = []

    async def events() -> Any:
        yield "data: 1\n\n"

    async def leave(*_: Any) -> Any:
        raise OSError

    async def run() -> None:
        stream = EventStream(events(), lambda: released.append("yes"), "a")
        scope: Any = {"type": "http", "asgi": {"spec_version": "2.4"}}
        with pytest.raises(Exception):  # noqa: B017, PT011 (starlette's own)
            await stream(scope, leave, leave)

    asyncio.run(run())
    assert released == ["yes"]
