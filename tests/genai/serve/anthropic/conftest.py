"""The server's application over scripted models, and checks of what it writes."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.openai.scripted import ScriptedModel, ScriptedModels, scripted_model

from genai_layer.serve.access import Access
from genai_layer.serve.app import create_app
from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.hosts import Hosts
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"
SCHEMAS: dict[str, Any] = json.loads(lzma.decompress((GOLDENS / "anthropic.json.xz").read_bytes()))
VALIDATORS = {name: jsonschema_rs.validator_for(schema) for name, schema in SCHEMAS.items()}
"""Validators of what the official client parses; tools/make_anthropic_goldens.py wrote them."""

KEY = "secret"
HELLO: Any = [{"role": "user", "content": "Hello"}]

Serve = Callable[..., ScriptedModel]
Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="session")
def http(models: Any) -> Iterator[TestClient]:
    commons = Commons(Limits(queue=8, max_body=1 << 16), Metrics(), Activity())
    app = create_app(models, commons, Access(Hosts(["testserver"]), key=KEY))
    with TestClient(app, headers={"x-api-key": KEY}, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def serve(models: ScriptedModels, tmp_path: Path) -> Serve:
    """Return a function that serves a model with scripts."""

    def begin(*scripts: str, template: Any = "") -> ScriptedModel:
        models.model = scripted_model(tmp_path, *scripts, template=template)
        return models.model

    return begin


@pytest.fixture
def ask(http: TestClient) -> Ask:
    """Return a function that sends a request, and returns the reply as the client parses it."""

    def send(path: str = "/v1/messages", status: int = 200, **values: Any) -> Any:
        body = {"model": "toy", "max_tokens": 99, "messages": HELLO, **values}
        reply = http.post(path, json=body)
        assert reply.status_code == status, reply.text
        found = reply.json()
        kind = "message" if path == "/v1/messages" else "count"
        VALIDATORS[kind if status == 200 else "error"].validate(found)
        return found

    return send


@pytest.fixture
def stream(http: TestClient) -> Ask:
    """Return a function that sends a request, and returns the events of the stream."""

    def send(**values: Any) -> list[Any]:
        body = {"model": "toy", "max_tokens": 99, "messages": HELLO, "stream": True, **values}
        reply = http.post("/v1/messages", json=body)
        assert reply.headers["content-type"].startswith("text/event-stream"), reply.text
        return [_event(one) for one in reply.text.split("\n\n") if one]

    return send


def _event(text: str) -> Any:
    """Return an event, as the client parses it: by its name, but for pings."""
    name, data = (line.partition(": ")[2] for line in text.splitlines())
    found = json.loads(data)
    assert found["type"] == name
    if name != "ping":
        VALIDATORS["error" if name == "error" else "event"].validate(found)
    return found
