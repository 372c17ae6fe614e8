"""First event of a stream: clients take the time of its arrival for that of the first token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from fastapi import FastAPI
from tests.genai.serve.openai.conftest import Serve
from tests.genai.serve.openai.test_chat import HELLO

CHAT = {"messages": HELLO}
ECHO = {"prompt": "ab", "echo": True}


async def messages_of(app: FastAPI, path: str, body: dict[str, Any], events: int) -> list[Any]:
    """Return the messages that a server sends of a stream that does not end.

    Args:
        app: the server.
        path: of the request.
        body: of the request.
        events: events to wait for; more may follow them at once.
    """
    scope: Any = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    given = [{"type": "http.request", "body": json.dumps({"model": "toy", **body}).encode()}]
    found: list[Any] = []

    async def receive() -> Any:
        return given.pop() if given else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        found.append(message)

    running = asyncio.ensure_future(app(scope, receive, send))
    await asyncio.wait([running], timeout=0.1)
    async with asyncio.timeout(60):
        while text_of(found).count("\n\n") < events:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    return found


def text_of(messages: Iterable[Any]) -> str:
    return b"".join(message.get("body", b"") for message in messages).decode()


async def sent(app: FastAPI, path: str, body: dict[str, Any], events: int = 0) -> str:
    """Return the events of a stream that does not end; see ``messages_of``."""
    return text_of(await messages_of(app, path, body, events))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", {**CHAT, "n": 2}),
        ("/v1/completions", ECHO),
    ],
    ids=["chat", "choices", "echo"],
)
def test_no_event_of_a_choice_precedes_its_first_token(
    serve: Serve, app: FastAPI, path: str, body: dict[str, Any]
) -> None:
    serve("\1")
    assert asyncio.run(sent(app, path, {**body, "stream": True})) == ""
    serve("a\1")
    expected = 2 * body.get("n", 1)
    texts = asyncio.run(sent(app, path, {**body, "stream": True}, expected)).split("\n\n")
    events = [json.loads(text.removeprefix("data: ")) for text in texts if text]
    assert len(events) == expected


def test_each_choice_begins_with_its_role(serve: Serve, app: FastAPI) -> None:
    serve("a\1")
    body = {**CHAT, "n": 2, "stream": True}
    texts = asyncio.run(sent(app, "/v1/chat/completions", body, 4)).split("\n\n")
    choices = [json.loads(one.removeprefix("data: "))["choices"][0] for one in texts if one]
    for number in (0, 1):
        first, second = [one["delta"] for one in choices if one["index"] == number]
        assert first == {"role": "assistant", "content": ""}
        assert second == {"content": "a"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", CHAT),
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/responses", {"input": "a"}),
    ],
    ids=["chat", "completion", "response"],
)
def test_the_id_of_a_reply_precedes_its_first_token(
    serve: Serve, app: FastAPI, path: str, body: dict[str, Any]
) -> None:
    serve("a\1")
    start, *events = asyncio.run(messages_of(app, path, {**body, "stream": True}, 1))
    reply_id = dict(start["headers"])[b"x-reply-id"].decode()
    assert f'"id":"{reply_id}"' in events[0]["body"].decode()
