"""The official client, connected to endpoints over scripted models, or over one that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.genai.serve.conftest import TABLE
from tests.genai.serve.openai.scripted import (
    ScriptedModel,
    ScriptedModels,
    ScriptedTexts,
    scripted_app,
    scripted_model,
)

from genai_layer.serve.app import create_app
from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.opening import open_model
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.models.spec import ModelSpec
from genai_layer.testing.memory_batching import BatchingCore

Serve = Callable[..., tuple[openai.OpenAI, ScriptedModel]]

HERMES = (
    "{% if tools %}<|system|>{{ tools | tojson }} Write <tool_call> tags.{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or () %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Template that teaches calls between tags."""

LLAMA = (
    "{% if tools %}<|system|>{{ tools | tojson }}"
    '{"name": function name, "parameters": dictionary of argument name and its value}{% endif %}'
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Template that teaches calls as JSON."""


@pytest.fixture(scope="session")
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="session")
def app(models: ScriptedModels) -> FastAPI:
    return scripted_app(models)


@pytest.fixture(scope="session")
def http(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def serve(models: ScriptedModels, http: TestClient, tmp_path: Path) -> Serve:
    """Return a function that serves a model with scripts, and returns a client and the model."""

    def begin(*scripts: str, template: Any = "") -> tuple[openai.OpenAI, ScriptedModel]:
        models.model = scripted_model(tmp_path, *scripts, template=template)
        client = openai.OpenAI(
            api_key="none", base_url="http://testserver/v1", http_client=http, max_retries=0
        )
        return client, models.model

    return begin


class _Registry(ModelRegistry):
    """Registry of a language model, with embeddings by script."""

    async def embedding(self, name: str) -> Any:
        return ScriptedTexts(name)


@pytest.fixture(scope="session")
def running(toy: Path) -> Iterator[TestClient]:
    """Return a client of a server whose model runs in memory, and writes at most 12 tokens."""
    commons = Commons(Limits(max_tokens=12), Metrics(), Activity())
    core = BatchingCore(TABLE)
    specs = [ModelSpec("toy", "text", toy, "CPU", {}, 2)]
    models = _Registry(specs, commons, None, lambda spec: open_model(spec, core))
    with TestClient(create_app(models, commons), "http://127.0.0.1") as client:
        yield client
