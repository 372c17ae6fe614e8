"""Requests of clients as they ship, from the recordings of tools/record_client_requests.py.

Each is answered, and OpenAI's own types accept the answer. Ours stand in where theirs lack what
OpenAI sends: null in parts of completions, and base64.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from genai_layer.serve.openai.completions import CompletionReply
from genai_layer.serve.openai.texts import EmbeddingReply

KINDS: dict[str, tuple[Any, Any]] = {
    "/v1/chat/completions": (ChatCompletion, ChatCompletionChunk),
    "/v1/completions": (CompletionReply, CompletionReply),
    "/v1/responses": (Response, ResponseStreamEvent),
    "/v1/embeddings": (EmbeddingReply, None),
    "/v1/models": (dict[str, str | list[Model]], None),
}
"""Types of a reply, and of the events of a stream, by path."""
RECORDINGS = [
    path
    for path in sorted((Path(__file__).parents[1] / "clients").glob("*.json"))
    if all(request["path"] in KINDS for request in json.loads(path.read_text()))
]
"""Recordings of requests that these types answer; others have tests beside their doors."""


@cache
def adapter(path: str, streams: bool) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[path][streams])


def check(path: str, text: str, streams: bool) -> None:
    """Parse a reply, or the events of a stream, by the client's types."""
    if not streams:
        adapter(path, False).validate_json(text)
        return
    events = [line.removeprefix("data: ") for line in text.splitlines() if line[:5] == "data:"]
    assert events
    for event in events:
        if event != "[DONE]":
            assert "error" not in event[:9]
            adapter(path, True).validate_json(event)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_requests_of_a_client_are_answered(running: TestClient, recording: Path) -> None:
    for request in json.loads(recording.read_text()):
        method, path, body = request["method"], request["path"], request["body"]
        reply = running.request(method, path, headers=request["headers"], json=body)
        assert reply.status_code == 200, reply.text
        check(path, reply.text, bool((body or {}).get("stream")))
