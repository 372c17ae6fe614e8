"""Observation of the demo model on the simulated NPU, while it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from genai_layer import GenerationConfig
from genai_layer.serve.app import create_app
from genai_layer.serve.engine.activity import Activity
from genai_layer.serve.engine.commons import Commons
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
    client = TestClient(create_app(models, commons))

    async def get(path: str, **params: Any) -> Any:
        response = await asyncio.to_thread(client.get, path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    return await models.text("demo"), get


async def generate(model: ServedTextModel, tokens: int, name: str) -> int:
    config = GenerationConfig(max_new_tokens=40, ignore_eos=True)
    prompt = [7 + number % 50 for number in range(tokens)]
    chunks = [chunk async for chunk in await model.submit(prompt, config, name)]
    return sum(len(chunk.tokens) for chunk in chunks)


async def state_when(get: Get, condition: Callable[[Any], bool]) -> Any:
    """Return the first state that meets a condition."""
    for _ in range(2000):
        state = await get("/npu/state")
        if condition(state):
            return state
        await asyncio.sleep(0.005)
    raise AssertionError(f"the last state is {state}")


def in_step(count: int) -> Callable[[Any], bool]:
    """Return a condition: the last step generated for so many conversations."""
    return lambda state: bool(state["last_step"]) and state["last_step"]["generated"] == count


def test_requests_are_shown_in_their_slots(opened: Finish) -> None:
    async def work() -> None:
        model, get = await served(opened)
        empty = await get("/npu/state", model="demo")
        assert (empty["observable"], empty["last_step"]) == (True, None)
        assert [slot["phase"] for slot in empty["slots"]] == ["free", "free"]
        assert (empty["kv"]["capacity"], empty["kv"]["layers"]) == (192, 4)
        running = [generate(model, 100, "long"), generate(model, 20, "short")]
        answers = asyncio.gather(*running)
        state = await state_when(get, in_step(2))
        slots = {slot["request"]: slot for slot in state["slots"]}
        assert slots.keys() == {"long", "short"}
        assert (slots["long"]["prompt_tokens"], slots["short"]["prompt_tokens"]) == (100, 20)
        assert slots["long"]["prefill_chunks"] == [64, 36]
        assert slots["long"]["copied_bytes"] == 0
        assert "2 conversations generate together" in slots["long"]["variant_reason"]
        kinds = {part["kind"] for part in state["memory"]}
        assert kinds == {"weights", "programs", "kv_cache", "prefix_cache"}
        assert await answers == [40, 40]
        idle = await state_when(get, lambda state: state["speed"]["tpot_ms"] is not None)
        assert idle["queue"] == 0

    asyncio.run(asyncio.wait_for(work(), 120))


def test_a_plan_is_what_a_request_then_shows(opened: Finish) -> None:
    async def work() -> None:
        model, get = await served(opened)
        for tokens in (1, 20, 64, 100, 128):
            plan = await get("/npu/plan", prompt_tokens=tokens)
            (chosen,) = (one["capacity"] for one in plan["variants"] if one["chosen"])
            answer = asyncio.ensure_future(generate(model, tokens, str(tokens)))
            state = await state_when(
                get,
                lambda state, name=str(tokens): any(
                    slot["request"] == name and slot["phase"] == "generating"
                    for slot in state["slots"]
                ),
            )
            (slot,) = (one for one in state["slots"] if one["request"] == str(tokens))
            read = [chunk["tokens"] for chunk in plan["chunks"]]
            assert slot["prefill_chunks"] == read[slot["cached_tokens"] // 64 :]
            assert slot["variant"] == chosen
            await answer
        wider = await get("/npu/plan", prompt_tokens=3000, max_prompt_len=4096)
        assert (wider["fits"], wider["needed"]) == (True, 3064)

    asyncio.run(asyncio.wait_for(work(), 120))


def test_the_timeline_of_a_step_is_that_of_its_programs(opened: Finish) -> None:
    async def work() -> None:
        model, get = await served(opened)
        await generate(model, 20, "")
        step = (await state_when(get, in_step(1)))["last_step"]
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
