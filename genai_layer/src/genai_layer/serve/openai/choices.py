"""Choices of a request: one generation each, which run side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from genai_layer.errors import ConfigError
from genai_layer.generation_config import GenerationConfig
from genai_layer.serve.engine.contract import Chunk, Running, TextModel
from genai_layer.serve.errors import BadRequest

_NAMES = ("structured_output_config", "the requested format or tool")
"""Name of a parameter of genai, and of the request's fields that it stands for."""


class Choices:
    """Accepted generations; iterate over their chunks once.

    Args:
        running: generations of the prompts, all choices of a prompt after another.
        each: number of choices of a prompt.
    """

    def __init__(self, running: Sequence[Running], each: int) -> None:
        self._running = running
        self._each = each

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of all prompts; each prompt counts once."""
        return sum(one.prompt_tokens for one in self._running[:: self._each])

    @property
    def cached_tokens(self) -> int:
        """Number of those that the prefix cache had."""
        return sum(one.cached_tokens for one in self._running[:: self._each])

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        """Yield the chunks as they arrive; their index is the choice's.

        Raises:
            GenAIError: a generation failed; the others are cancelled.
        """
        sources = [aiter(one) for one in self._running]
        waiting = {asyncio.ensure_future(anext(one)): n for n, one in enumerate(sources)}
        try:
            while waiting:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=lambda task: waiting[task]):
                    number = waiting.pop(task)
                    try:
                        chunk = task.result()
                    except StopAsyncIteration:
                        continue
                    waiting[asyncio.ensure_future(anext(sources[number]))] = number
                    yield replace(chunk, index=number)
        finally:
            self.cancel()
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def cancel(self) -> None:
        """End all generations; without effect on those that have ended."""
        for one in self._running:
            one.cancel()


async def start_choices(
    model: TextModel,
    prompts: Sequence[str | list[int]],
    configs: Sequence[GenerationConfig],
    request_id: str,
) -> Choices:
    """Submit a generation for each prompt and each of the parameters.

    Raises:
        GenAIError: a generation was rejected; none runs. See ``TextModel.submit``.
    """
    running: list[Running] = []
    try:
        for prompt in prompts:
            for config in configs:
                running.append(await model.submit(prompt, config, request_id))
    except BaseException as error:
        for one in running:
            one.cancel()
        if isinstance(error, ConfigError):
            raise BadRequest(str(error).replace(*_NAMES)) from error
        raise
    return Choices(running, len(configs))
