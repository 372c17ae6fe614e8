"""The official client, connected to endpoints over scripted models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.genai.serve.openai.scripted import (
    ScriptedModel,
    ScriptedModels,
    scripted_app,
    scripted_model,
)

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
