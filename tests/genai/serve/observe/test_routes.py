"""Observation routes on the in-memory runtime, which shows nothing of itself."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.genai.serve.conftest import Parts, greedy, run, text_of

from genai_layer.serve.access import Access
from genai_layer.serve.app import create_app
from genai_layer.serve.hosts import Hosts
from genai_layer.serve.limits import Limits
from genai_layer.serve.observe import routes as observed_routes
from genai_layer.serve.observe.view import ModelView, Views

Make = Callable[..., Parts]
CHECKS = [content_type_conformance, response_schema_conformance, status_code_conformance]


async def answered(made: Parts, *paths: str) -> list[Any]:
    """Load the toy, answer a request, and return the responses of routes."""
    model = await made.models.text("toy")
    await text_of(await model.submit("a", greedy(), "first"))
    client = TestClient(create_app(made.models, made.commons), "http://127.0.0.1")
    return [await asyncio.to_thread(client.get, path) for path in paths]


def test_a_runtime_that_shows_nothing_has_a_queue_and_a_speed(parts: Make) -> None:
    async def work() -> None:
        (response,) = await answered(parts(queue=7), "/npu/state?model=toy")
        state = response.json()
        assert response.status_code == 200
        assert (state["model"], state["device"], state["observable"]) == ("toy", "CPU", False)
        assert state["kv"] is state["memory"] is state["last_step"] is None
        assert (state["slots"], state["queue"], state["queue_limit"]) == ([], 0, 7)
        assert state["max_tokens"] == Limits().max_tokens
        assert state["speed"]["ttft_ms"] > 0
        assert state["speed"]["tokens_per_s"] > 0

    run(work())


def test_what_cannot_be_observed_is_rejected_by_name(parts: Make) -> None:
    async def work() -> None:
        made = parts("toy", "other")
        paths = {
            "/npu/state?model=none": (404, "model_not_found"),
            "/npu/events?model=none": (404, "model_not_found"),
            "/npu/state?model=other": (409, "model_not_loaded"),
            "/npu/events?model=other": (409, "model_not_loaded"),
            "/npu/plan?model=other&prompt_tokens=3": (409, "model_not_loaded"),
            "/npu/plan?prompt_tokens=3": (409, "model_not_observable"),
            "/npu/plan": (400, None),
            "/npu/plan?prompt_tokens=0": (400, None),
            "/npu/plan?prompt_tokens=x": (400, None),
            f"/npu/plan?prompt_tokens={observed_routes.LONGEST + 1}": (400, None),
        }
        for response in await answered(made, *paths):
            path = response.url.raw_path.decode()
            assert (response.status_code, response.json()["error"]["code"]) == paths[path]
        assert made.opened == ["toy"], "observation loads no model"

    run(work())


def test_the_stream_shows_changes_at_once_and_ends_with_the_model(
    parts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_routes, "_INTERVAL", 0.001)

    async def work() -> None:
        made = parts("toy", "other", max_bytes=150)
        model = await made.models.text("toy")
        stream = observed_routes._events(made.models, "toy", Views())
        first = state_of(await anext(stream))
        assert first["speed"]["ttft_ms"] is None
        await text_of(await model.submit("a", greedy(), "first"))
        assert state_of(await anext(stream))["speed"]["ttft_ms"] > 0
        again = state_of(await anext(stream))
        assert again["queue"] == 0, "without a change the state is sent again"
        del model
        await made.models.text("other")
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    run(work())


def test_the_stream_waits_for_a_model_that_is_being_loaded(
    parts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_routes, "_INTERVAL", 0.001)
    gate = threading.Event()

    async def work() -> None:
        made = parts(before=gate.wait)
        load = asyncio.ensure_future(made.models.text("toy"))
        await asyncio.sleep(0)
        client = TestClient(create_app(made.models, made.commons), "http://127.0.0.1")
        state = await asyncio.to_thread(client.get, "/npu/state")
        assert (state.status_code, state.json()["error"]["message"]) == (
            409,
            "model 'toy': is being loaded; try again later",
        )
        response = await route_of(made, "/npu/events")()
        stream = response.body_iterator
        assert await anext(stream) == "event: loading\ndata: {}\n\n"
        gate.set()
        assert state_of(await anext(stream))["model"] == "toy"
        await load

    run(work())


def test_the_stream_ends_when_the_server_shuts_down(parts: Make) -> None:
    async def work() -> None:
        made = parts()
        await made.models.text("toy")
        stream = observed_routes._events(made.models, "toy", Views())
        await anext(stream)
        following = asyncio.ensure_future(anext(stream, "ended"))
        await made.commons.activity.stop(0)
        assert await following == "ended"

    run(work())


def route_of(made: Parts, path: str) -> Any:
    """Return the function of a route."""
    routes: list[Any] = observed_routes.router(made.models).routes
    return next(route.endpoint for route in routes if route.path == path)


def state_of(event: str) -> Any:
    kind, data, *rest = event.split("\n")
    assert (kind, rest) == ("event: state", ["", ""])
    return json.loads(data.removeprefix("data: "))


def test_all_clients_share_one_state(parts: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[object] = []
    compute = ModelView._state

    async def counted(self: ModelView, model: Any) -> Any:
        computed.append(model)
        return await compute(self, model)

    monkeypatch.setattr(ModelView, "_state", counted)

    async def work() -> None:
        made = parts()
        model, views = await made.models.text("toy"), Views()
        await asyncio.gather(*(views.json(model) for _ in range(20)))
        assert len(computed) == 1
        model.changes += 1
        await views.json(model)
        assert len(computed) == 2

    run(work())


def test_a_server_without_language_models_has_nothing_to_observe(parts: Make) -> None:
    async def work() -> None:
        made = parts()
        made.models._specs.clear()
        client = TestClient(create_app(made.models, made.commons), "http://127.0.0.1")
        response = await asyncio.to_thread(client.get, "/npu/state")
        assert response.status_code == 409
        assert "no language model" in response.json()["error"]["message"]

    run(work())


def test_no_parameter_makes_the_server_fail(parts: Make) -> None:
    def fuzz(app: FastAPI) -> None:
        described = schemathesis.openapi.from_asgi("/openapi.json", app)
        chosen = described.include(path=["/npu/state", "/npu/plan"])
        operations = [result.ok() for result in chosen.get_all_operations()]
        assert len(operations) == 2
        for operation in operations:

            @given(case=operation.as_strategy())
            @settings(max_examples=30, suppress_health_check=[*HealthCheck], database=None)
            def check(case: Any) -> None:
                response = case.call()
                case.validate_response(response, checks=CHECKS)
                assert response.status_code < 500

            check()

    async def work() -> None:
        made = parts()
        await made.models.text("toy")
        access = Access(Hosts(["testserver"]))  # schemathesis's name
        await asyncio.to_thread(fuzz, create_app(made.models, made.commons, access))

    run(work())
