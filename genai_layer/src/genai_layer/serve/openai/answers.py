"""Answers of a request as they grow, from generations that run side by side.

A choice of a request is one generation. An answer has parts, tokens with log-probabilities, and the
reason for the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from genai_layer.detokenizer import Decodes
from genai_layer.errors import ConfigError
from genai_layer.generation_config import GenerationConfig
from genai_layer.prompt import Prompt
from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import Alternatives
from genai_layer.serve.engine.contract import Chunk
from genai_layer.serve.engine.running import RunningRequest
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.tools.calls import Call, Part, Reader

_NAMES = ("structured_output_config", "the requested format or tool")
"""Name of a parameter of genai, and of the request's fields that it stands for."""


class Choices:
    """Accepted generations; iterate over their chunks once.

    Args:
        running: generations of the prompts, all choices of a prompt after another.
        each: number of choices of a prompt.
    """

    def __init__(self, running: Sequence[RunningRequest], each: int) -> None:
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
    model: ServedTextModel,
    prompts: Sequence[str | list[int] | Prompt],
    configs: Sequence[GenerationConfig],
    request_id: str,
) -> Choices:
    """Submit a generation for each prompt and each of the parameters.

    Raises:
        GenAIError: a generation was rejected; none runs. See ``ServedTextModel.submit``.
    """
    running: list[RunningRequest] = []
    try:
        for given in prompts:
            prompt = await model.encode_text(given) if isinstance(given, str) else given
            for config in configs:
                running.append(await model.submit(prompt, config, request_id))
    except BaseException as error:
        for one in running:
            one.cancel()
        if isinstance(error, ConfigError):
            raise BadRequest(str(error).replace(*_NAMES)) from error
        raise
    return Choices(running, len(configs))


_FINISHES: dict[GenerationFinishReason, Literal["stop", "length"]] = {
    GenerationFinishReason.LENGTH: "length",
    GenerationFinishReason.CAPACITY: "length",
}


def textless_stops(tokenizer: Decodes, config: GenerationConfig) -> frozenset[int]:
    """Return the stop tokens that are special: they end an answer, and have no text."""
    return frozenset(token for token in config.stop_token_ids if not tokenizer.decode([token]))


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """Token of an answer."""

    id: int
    log_prob: float
    alternatives: Alternatives
    predicted: bool = True
    """False for the first token of a prompt, whose log-probability means nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """Parts and tokens that one chunk adds to an answer."""

    parts: list[Part]
    tokens: list[ScoredToken]
    """Tokens of the chunk, without a stop token that has no text."""
    first_call: int
    """Number of the answer's calls before this step."""
    finish: Literal["stop", "length", "tool_calls"] | None
    first: bool
    """True for the first step of an answer."""


@dataclass(slots=True)
class Answer:
    """One choice; a prompt's tokens that are echoed begin its tokens, but not its text."""

    reader: Reader
    stop_tokens: frozenset[int]
    stop_texts: Collection[str] = ()
    text: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    tokens: list[ScoredToken] = field(default_factory=list[ScoredToken])
    count: int = 0
    """Number of generated tokens, a stop token included."""
    begun: bool = False
    """True once the answer has a step."""
    finish: Literal["stop", "length", "tool_calls"] | None = None

    def add(self, chunk: Chunk) -> Step:
        """Add a chunk."""
        first_call = len(self.calls)
        parts = self.reader.feed(chunk.text)
        if chunk.finish is not None:
            parts += self.reader.end(self._cut(chunk))
        for part in parts:
            if isinstance(part, Call):
                self.calls.append(part)
            else:
                self.text += part
        if chunk.finish is not None:
            plain = _FINISHES.get(chunk.finish, "stop")
            self.finish = "tool_calls" if self.calls and plain == "stop" else plain
        tokens = self._scored(chunk)
        self.tokens += tokens
        self.count += len(chunk.tokens) - chunk.echoed
        first, self.begun = not self.begun, True
        return Step(parts, tokens, first_call, self.finish, first)

    def _cut(self, chunk: Chunk) -> Collection[str]:
        """Return the texts of which the last chunk lacks one; see ``Reader.end``."""
        if chunk.finish in _FINISHES:
            return ("",)
        ended = any(token in self.stop_tokens for token in chunk.tokens[-1:])
        return () if ended else self.stop_texts

    def _scored(self, chunk: Chunk) -> list[ScoredToken]:
        places = zip(chunk.tokens, chunk.log_probs, chunk.alternatives, strict=True)
        found = [ScoredToken(*place) for place in places]
        if chunk.echoed:
            found[0] = replace(found[0], predicted=False)
        stopped = chunk.finish is GenerationFinishReason.STOP
        if stopped and found and found[-1].id in self.stop_tokens:
            found.pop()
        return found


class Answers:
    """Answers of a request.

    Args:
        choices: the generations.
        count: their number.
        new_reader: makes the reader of an answer.
        stop_tokens: ids that end an answer and have no text.
        stop_texts: texts that end an answer and are cut off.
    """

    def __init__(
        self,
        choices: Choices,
        count: int,
        new_reader: Callable[[], Reader],
        stop_tokens: frozenset[int],
        stop_texts: Collection[str] = (),
    ) -> None:
        self.choices = choices
        self.all = [Answer(new_reader(), stop_tokens, stop_texts) for _ in range(count)]

    async def steps(self) -> AsyncIterator[tuple[int, Step]]:
        """Yield the number of an answer, and what it grows by; errors as ``Choices``."""
        async for chunk in self.choices:
            yield chunk.index, self.all[chunk.index].add(chunk)

    async def complete(self) -> list[Answer]:
        """Return the complete answers; errors as ``Choices``."""
        try:
            async for _ in self.steps():
                pass
        finally:
            self.choices.cancel()
        return self.all

    @property
    def generated_tokens(self) -> int:
        """Number of tokens of all answers."""
        return sum(one.count for one in self.all)
