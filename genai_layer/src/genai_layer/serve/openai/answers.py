"""Answers as they grow: parts, tokens with log-probabilities, and the reason for the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Literal

from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import Alternatives
from genai_layer.serve.engine.contract import Chunk
from genai_layer.serve.openai.choices import Choices
from genai_layer.serve.openai.tools.call import Call
from genai_layer.serve.openai.tools.readers import Part, Reader

_FINISHES: dict[GenerationFinishReason, Literal["stop", "length"]] = {
    GenerationFinishReason.LENGTH: "length",
    GenerationFinishReason.CAPACITY: "length",
}


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """Token of an answer."""

    id: int
    log_prob: float
    alternatives: Alternatives


@dataclass(frozen=True, slots=True)
class Step:
    """Parts and tokens that one chunk adds to an answer."""

    parts: list[Part]
    tokens: list[ScoredToken]
    """Tokens of the chunk, without a stop token."""
    first_call: int
    """Number of the answer's calls before this step."""
    finish: Literal["stop", "length", "tool_calls"] | None


@dataclass(slots=True)
class Answer:
    """One choice."""

    reader: Reader
    stop_tokens: frozenset[int]
    text: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    tokens: list[ScoredToken] = field(default_factory=list[ScoredToken])
    count: int = 0
    """Number of generated tokens, a stop token included."""
    finish: Literal["stop", "length", "tool_calls"] | None = None

    def add(self, chunk: Chunk) -> Step:
        """Add a chunk."""
        first_call = len(self.calls)
        parts = self.reader.feed(chunk.text)
        if chunk.finish is not None:
            parts += self.reader.end()
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
        self.count += len(chunk.tokens)
        return Step(parts, tokens, first_call, self.finish)

    def _scored(self, chunk: Chunk) -> list[ScoredToken]:
        places = zip(chunk.tokens, chunk.log_probs, chunk.alternatives, strict=True)
        found = [ScoredToken(*place) for place in places]
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
    """

    def __init__(
        self,
        choices: Choices,
        count: int,
        new_reader: Callable[[], Reader],
        stop_tokens: frozenset[int],
    ) -> None:
        self.choices = choices
        self.all = [Answer(new_reader(), stop_tokens) for _ in range(count)]

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
