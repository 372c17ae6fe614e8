"""Language models behind the asyncio interface: results, bounds of queue, time and reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.genai.serve.conftest import Parts, greedy, run, text_of

from genai_layer import ConfigError, GenerationFinishReason, StructuredOutputConfig
from genai_layer.batching.request import GenerationHandle, GenerationStatus
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.errors import PromptTooLong
from genai_layer.serve.engine import running as running_module
from genai_layer.serve.errors import (
    BadRequest,
    QueueFull,
    ShuttingDown,
    SlowReader,
    TimedOut,
    TooLong,
    as_serve_error,
)

Make = Callable[..., Parts]
ENDLESS = greedy(4000, ignore_eos=True)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread."""
    while not condition():
        await asyncio.sleep(0.001)


def test_answers_side_by_side_are_those_alone(parts: Make) -> None:
    async def ask() -> None:
        model = await parts().models.text("toy")
        prompts = [f"prompt {number}" for number in range(12)]
        alone = [await text_of(await model.submit(one, greedy(9), "")) for one in prompts]
        running = [await model.submit(one, greedy(9), one) for one in prompts]
        assert set(model.request_ids().values()) <= set(prompts)
        assert await asyncio.gather(*map(text_of, running)) == alone
        assert [one.prompt_tokens for one in running] == [len(one) for one in prompts]
        await until(lambda: model.idle)
        assert model.request_ids() == {}

    run(ask())


def test_chunks_have_tokens_text_and_an_end(parts: Make) -> None:
    async def ask() -> None:
        model = await parts().models.text("toy")
        chunks = [chunk async for chunk in await model.submit([7, 8], greedy(4, logprobs=1), "a")]
        assert [len(chunk.tokens) for chunk in chunks] == [1, 1, 1, 1]
        assert all(chunk.log_probs[0] < 0 for chunk in chunks)
        assert [chunk.finish for chunk in chunks[:-1]] == [None] * 3
        assert chunks[-1].finish is GenerationFinishReason.LENGTH
        several = greedy(3, do_sample=True, num_return_sequences=2)
        chunks = [chunk async for chunk in await model.submit([7, 8], several, "b")]
        assert [chunk.index for chunk in chunks] == [0, 1]

    run(ask())


def test_a_cancelled_request_frees_its_slot_within_a_step(parts: Make) -> None:
    async def ask() -> None:
        model = await parts(slots=1).models.text("toy")
        first = await model.submit("first", ENDLESS, "")
        second = await model.submit("second", greedy(2), "")
        async for _ in first:
            break
        first.cancel()
        first.cancel()
        assert len(await text_of(second)) > 0
        await until(lambda: model.idle)
        last = await model.submit("third", ENDLESS, "")
        await until(lambda: model.running == 1)
        last.cancel()
        await until(lambda: not model.pipeline.has_non_finished_requests())

    run(ask())


def test_a_full_queue_rejects_with_the_seconds_to_wait(parts: Make) -> None:
    async def ask() -> None:
        model = await parts(slots=1, queue=2).models.text("toy")
        first = await model.submit("first", ENDLESS, "")
        await until(lambda: model.running == 1)
        waiting = [await model.submit("next", greedy(2), "") for _ in range(2)]
        with pytest.raises(QueueFull, match="2 requests wait") as caught:
            await model.submit("one more", greedy(2), "")
        assert 1 <= int(caught.value.headers["Retry-After"]) <= 600
        assert (model.queue, model.queue_limit) == (2, 2)
        first.cancel()
        assert await text_of(waiting[0]) == await text_of(waiting[1])
        assert await text_of(await model.submit("one more", greedy(2), ""))

    run(ask())


def test_a_request_that_takes_too_long_ends(parts: Make) -> None:
    async def ask() -> None:
        models = parts(timeout=0.05).models
        await models.preload("toy")
        model = await models.text("toy")
        with pytest.raises(TimedOut, match=r"time limit of 0\.05 s"):
            await text_of(await model.submit("hello", ENDLESS, ""))
        await until(lambda: model.idle)

    run(ask())


def test_a_slow_reader_ends_its_request_alone(parts: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_module, "MOST_CHUNKS", 64)

    async def ask() -> None:
        model = await parts().models.text("toy")
        slow = await model.submit("slow", ENDLESS, "")
        assert await text_of(await model.submit("other", greedy(30), ""))
        await until(lambda: model.idle)
        chunks = aiter(slow)
        for _ in range(65):
            await anext(chunks)
        with pytest.raises(SlowReader, match="not read the last 64 parts"):
            await anext(chunks)

    run(ask())


def test_wrong_requests_are_rejected_before_they_wait(parts: Make) -> None:
    async def ask() -> None:
        model = await parts(max_tokens=50).models.text("toy")
        with pytest.raises(BadRequest, match="max_tokens = 51: the server's limit is 50"):
            await model.submit("hello", greedy(51), "")
        with pytest.raises(BadRequest, match="n = 3: the server runs 2 sequences"):
            await model.submit("hello", greedy(5, do_sample=True, num_return_sequences=3), "")
        with pytest.raises(ConfigError, match="temperature"):
            await model.submit("hello", greedy(5, do_sample=True, temperature=0.0), "")
        assert model.idle

    run(ask())


def test_answers_without_a_limit_get_the_servers(parts: Make) -> None:
    async def ask() -> None:
        model = await parts(max_tokens=7).models.text("toy")
        chunks = [one async for one in await model.submit("hi", model.defaults, "")]
        assert sum(len(one.tokens) for one in chunks) == 7

    run(ask())


def test_a_failing_step_ends_requests_and_the_next_ones_run(
    parts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        model = await parts().models.text("toy")
        expected = await text_of(await model.submit("hello", greedy(5), ""))
        with monkeypatch.context() as patch:
            patch.setattr(model.pipeline, "step", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await text_of(await model.submit("hello", greedy(5), ""))
            await until(lambda: model.idle)
        assert await text_of(await model.submit("hello", greedy(5), "")) == expected

    run(ask())


def test_a_shutdown_lets_requests_finish_or_ends_them(parts: Make) -> None:
    async def ask() -> None:
        made = parts()
        model = await made.models.text("toy")
        short, long = await model.submit("a", greedy(5), ""), await model.submit("b", ENDLESS, "")
        ending = asyncio.ensure_future(made.commons.activity.stop(0.2))
        await until(lambda: made.commons.activity.stopping)
        assert await text_of(short)
        with pytest.raises(ShuttingDown):
            await model.submit("c", greedy(5), "")
        with pytest.raises(ShuttingDown):
            await text_of(long)
        await ending

    run(ask())


def test_prompts_that_are_read_wait_in_the_queue(parts: Make) -> None:
    async def ask() -> None:
        model = await parts(queue=1).models.text("toy")
        free = threading.Event()
        reading = asyncio.ensure_future(model.encode(1, lambda _: free.wait(60)))
        await until(lambda: model.queue == 1)
        assert not model.idle
        with pytest.raises(QueueFull):
            await model.encode_text("hello")
        free.set()
        assert await reading
        assert model.idle
        assert len((await model.encode_text("hello")).ids) == len("hello")

    run(ask())


def test_a_prompt_that_is_too_long_is_the_clients_error(parts: Make) -> None:
    def too_long(_: PromptEncoder) -> None:
        raise PromptTooLong("MAX_PROMPT_LEN=8: the prompt has 9 tokens")

    async def ask() -> None:
        model = await parts().models.text("toy")
        with pytest.raises(TooLong, match="has 9 tokens"):
            await model.encode(1, too_long)
        assert model.idle

    run(ask())


def test_a_client_that_leaves_while_its_request_is_added_ends_it(
    parts: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        model = await parts().models.text("toy")
        add, adds, left = model.pipeline.add_prompt, threading.Event(), threading.Event()
        handles: list[GenerationHandle] = []

        def slow(*given: Any) -> tuple[GenerationHandle, int]:
            adds.set()
            left.wait(60)
            added = add(*given)
            handles.append(added[0])
            return added

        monkeypatch.setattr(model.pipeline, "add_prompt", slow)
        request = asyncio.ensure_future(model.submit([7, 8], ENDLESS, ""))
        await until(adds.is_set)
        request.cancel()
        await asyncio.wait([request])
        left.set()
        await until(lambda: bool(handles))
        await until(lambda: handles[0].get_status() is GenerationStatus.CANCEL)

    run(ask())


def test_a_broken_grammar_is_the_clients_error_with_its_reason(parts: Make) -> None:
    async def ask() -> None:
        model = await parts().models.text("toy")
        schema = StructuredOutputConfig(json_schema='{"type": "string", "pattern": "(?=a)"}')
        with pytest.raises(ConfigError, match=r"look-around, .* is not supported") as caught:
            await text_of(await model.submit("a", greedy(3, structured_output_config=schema), ""))
        assert isinstance(as_serve_error(caught.value), BadRequest)
        assert "look-around" in str(as_serve_error(caught.value))

    run(ask())


def test_a_lenient_server_ignores_keywords_that_grammars_cannot_follow(parts: Make) -> None:
    config = StructuredOutputConfig(json_schema='{"type": "string", "format": "regex"}')

    async def ask(**limits: bool) -> str:
        model = await parts(**limits).models.text("toy")
        return await text_of(
            await model.submit("a", greedy(3, structured_output_config=config), "")
        )

    assert run(ask(lenient=True)).startswith('"')
    with pytest.raises(ConfigError, match=r"Unknown format: regex; .* --lenient of npu-serve"):
        run(ask())
    assert not config.lenient
