"""Observation of the demo model on the simulated NPU, while it answers."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from genai_layer import GenerationConfig
from genai_layer.serve.app import create_app
from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.opening import Finish, open_model
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.models.spec import ModelSpec

Get = Callable[..., Awaitable[Any]]
LENGTHS = {"MAX_PROMPT_LEN": 128, "MIN_RESPONSE_LEN": 64, "NPUW_LLM_PREFILL_CHUNK_SIZE": 64}


@pytest.fixture(scope="module")
def opened(demo: Path) -> Finish:
    return open_model(ModelSpec("demo", "text", demo, "NPU", LENGTHS, slots=2))


async def served(opened: Finish) -> tuple[ServedTextModel, Get]:
    """Return the model, and a function that returns the JSON of a route."""
    commons = Commons(Limits(), Metrics(), Activity())
    spec = ModelSpec("demo", "text", Path(), "NPU")
    models = ModelRegistry([spec], commons, opens=lambda _: opened)
    client = TestClient(create_app(models, commons), "http://127.0.0.1")

    async def get(path: str, **params: Any) -> Any:
        response = await asyncio.to_thread(client.get, path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    return await models.text("demo"), get


FIRST = itertools.count()
"""First tokens of prompts, none of which continues another."""


async def generate(model: ServedTextModel, tokens: int, name: str) -> int:
    config = GenerationConfig(max_new_tokens=40, ignore_eos=True)
    first = next(FIRST)
    prompt = [7 + (first + number) % 50 for number in range(tokens)]
    chunks = [chunk async for chunk in await model.submit(prompt, config, name)]
    return sum(len(chunk.tokens) for chunk in chunks)


class Gate:
    """Steps of a pipeline, which run one at a time when the test lets them."""

    def __init__(self, model: ServedTextModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self._model, self._step = model, model.pipeline.step
        self._permits = threading.Semaphore(0)
        monkeypatch.setattr(model.pipeline, "step", self._when_permitted)

    def _when_permitted(self) -> None:
        self._permits.acquire()
        self._step()

    async def requests(self, count: int) -> None:
        """Wait until so many requests are in the queue."""
        while len(self._model.request_ids()) < count:
            await asyncio.sleep(0.001)

    async def step(self) -> None:
        """Run a step."""
        before = self._model.changes
        self._permits.release()
        while self._model.changes == before:
            await asyncio.sleep(0.001)

    def open(self) -> None:
        """Let all steps run."""
        self._permits.release(10_000)


def test_requests_are_shown_in_their_slots(opened: Finish, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        model, get = await served(opened)
        gate = Gate(model, monkeypatch)
        empty = await get("/npu/state", model="demo")
        assert (empty["observable"], empty["last_step"]) == (True, None)
        assert [slot["phase"] for slot in empty["slots"]] == ["free", "free"]
        assert (empty["kv"]["capacity"], empty["kv"]["layers"]) == (192, 4)
        long = asyncio.ensure_future(generate(model, 128, "long"))
        await gate.requests(1)
        short = asyncio.ensure_future(generate(model, 16, "short"))
        await gate.requests(2)
        assert (await get("/npu/state"))["queue"] == 2
        await gate.step()
        state = await get("/npu/state")
        first, second = state["slots"]
        assert (first["request"], first["phase"]) == ("long", "prefilling")
        assert (first["prompt_tokens"], first["stored_tokens"]) == (128, 64)
        assert (second["request"], second["stored_tokens"]) == ("short", 0), "one prompt a step"
        assert (state["queue"], state["last_step"]["kind"]) == (0, "prefill")
        for _ in range(3):
            await gate.step()
        state = await get("/npu/state")
        first, second = state["slots"]
        assert (first["request"], second["request"]) == ("long", "short")
        assert first["prefill_chunks"] == [64, 64]
        assert second["prefill_chunks"] == [16]
        assert first["copied_bytes"] == second["copied_bytes"] == 0
        assert "2 conversations generate together" in first["variant_reason"]
        assert state["last_step"]["generated"] == 2
        kinds = {part["kind"] for part in state["memory"]}
        assert kinds == {"weights", "programs", "kv_cache", "prefix_cache"}
        gate.open()
        assert await asyncio.gather(long, short) == [40, 40]
        idle = await get("/npu/state")
        assert (idle["queue"], [slot["phase"] for slot in idle["slots"]]) == (0, ["free"] * 2)
        assert idle["speed"]["tpot_ms"] > 0

    asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.parametrize("tokens", [1, 20, 64, 100, 128])
def test_a_plan_is_what_a_request_then_shows(
    opened: Finish, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        model, get = await served(opened)
        gate = Gate(model, monkeypatch)
        plan = await get("/npu/plan", prompt_tokens=tokens)
        (chosen,) = (one["capacity"] for one in plan["variants"] if one["chosen"])
        answer = asyncio.ensure_future(generate(model, tokens, "asked"))
        await gate.requests(1)
        for _ in range(3):
            await gate.step()
        (slot,) = (one for one in (await get("/npu/state"))["slots"] if one["phase"] != "free")
        assert (slot["request"], slot["phase"]) == ("asked", "generating")
        assert slot["prefill_chunks"] == [chunk["tokens"] for chunk in plan["chunks"]]
        assert slot["variant"] == chosen
        assert slot["variant_reason"] == plan["reason"]
        gate.open()
        await answer

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_plan_of_other_lengths(opened: Finish) -> None:
    async def work() -> None:
        _, get = await served(opened)
        wider = await get("/npu/plan", prompt_tokens=3000, max_prompt_len=4096)
        assert (wider["fits"], wider["needed"]) == (True, 3064)

    asyncio.run(asyncio.wait_for(work(), 120))


def test_the_timeline_of_a_step_is_that_of_its_programs(opened: Finish) -> None:
    async def work() -> None:
        model, get = await served(opened)
        await generate(model, 20, "")
        step = (await get("/npu/state"))["last_step"]
        observer = model.pipeline.get_observer()
        assert observer is not None
        total = 0
        for program in step["programs"]:
            tasks = observer.timeline(program)
            assert tasks is not None
            total += max(task.end_ns for task in tasks)
        assert step["device_us"] == total / 1000
        assert [engine["engine"] for engine in step["engines"]] == ["DMA", "DPU", "SHAVE"]
        for engine in step["engines"]:
            assert 0 < engine["busy_us"] <= step["device_us"]
            assert 0 < len(engine["spans"]) <= 200
            assert max(span["end_us"] for span in engine["spans"]) <= step["device_us"]
        ends = [span["end_us"] for engine in step["engines"] for span in engine["spans"]]
        assert max(ends) == step["device_us"]

    asyncio.run(asyncio.wait_for(work(), 120))
