"""Decoding in steps: a method yields the tokens to read, and receives their logits.

One method thus serves callers that run it alone and callers that run several in turn. A task is one
prompt, and all that its decoding needs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from genai_layer.decoding.drafters import CandidateCount
from genai_layer.decoding.generated_sequence import GeneratedSequence, Limits
from genai_layer.decoding.language_model import LanguageModel, Rows
from genai_layer.decoding.stopwatch import TokenTimes
from genai_layer.decoding.truncation import Truncation
from genai_layer.generation_config import GenerationConfig
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.sampling.processors import Constraint, Logits
from genai_layer.sampling.sampler import Sampler
from genai_layer.streamers import StreamingStatus


class Drafter(Protocol):
    """Source of candidates for one text."""

    count: CandidateCount

    def begin(self) -> None:
        """Forget the last text."""
        ...

    def reads(self, tokens: Sequence[int]) -> int:
        """Return the number of inferences of a model that drafting takes."""
        ...

    def foretold(self, tokens: Sequence[int]) -> bool:
        """Return whether the last tokens are known to be what candidates would have been."""
        ...

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        """Return at most ``most`` tokens that may follow the prompt and the text so far."""
        ...

    def finish(self) -> None:
        """Complete the measurements."""
        ...


class Sink(Protocol):
    """Receiver of a generation's tokens and text."""

    def write(self, token: int, text: str) -> StreamingStatus:
        """Receive a token, and text that certainly belongs to the result."""
        ...

    def end(self, text: str) -> None:
        """Receive the remaining text; the generation has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt to continue."""

    prompt: list[int]
    """Ids; at least one."""
    config: GenerationConfig
    """Validated parameters."""
    limits: Limits
    model: LanguageModel
    decode: Callable[[list[int]], str]
    """Returns the text of ids, without special tokens."""
    sink: Sink
    """Receives the text of a single sequence as it grows."""
    raw: RawPerfMetrics
    times: TokenTimes
    constraint: Constraint | None = None
    """Limits the tokens of a text."""
    drafter: Drafter | None = None
    """Source of candidates for the tokens of a single sequence."""
    truncation: Truncation | None = None
    """Rule of a single sequence for a full cache; None if the runtime's own applies."""
    texts: list[GeneratedSequence] = field(default_factory=list[GeneratedSequence])
    """Texts in progress, for callers that read them between steps."""

    def new_sequence(self) -> GeneratedSequence:
        """Return an empty text."""
        sequence = GeneratedSequence(self.config, self.limits, self.decode)
        self.texts.append(sequence)
        return sequence

    def new_sampler(self) -> Sampler:
        """Return a sampler of the text's first token."""
        return Sampler(self.config, self.constraint)

    def finish(self, sequences: list[GeneratedSequence]) -> None:
        """Note the durations of all inferences and of decoding the texts."""
        self.model.finish()
        self.raw.detokenization_durations.append(sum(one.decoded for one in sequences))


@dataclass(frozen=True, slots=True)
class Read:
    """Tokens that the model has to read next; see ``LanguageModel.read``."""

    rows: Rows
    past: int
    sources: Sequence[int] = (0,)
    meanwhile: Callable[[], None] | None = None
    last: int = 1


Decoding = Generator[Read, Logits, list[GeneratedSequence]]
"""Method in progress: it receives logits f32 [rows, last, vocabulary] for a Read."""


def complete(decoding: Decoding, model: LanguageModel) -> list[GeneratedSequence]:
    """Run all steps of a method, and return its texts.

    Raises:
        RuntimeFailure: the runtime failed.
    """
    step = advance(decoding)
    while isinstance(step, Read):
        logits = model.read(
            step.rows, step.past, step.sources, last=step.last, meanwhile=step.meanwhile
        )
        step = advance(decoding, logits)
    return step


def advance(decoding: Decoding, logits: Logits | None = None) -> Read | list[GeneratedSequence]:
    """Run a method up to the next tokens to read, or to its texts.

    Args:
        decoding: the method.
        logits: those of the last tokens to read; None before the first ones.

    Raises:
        StopIteration: a streamer raised it, which Python turns into a RuntimeError in a generator.
    """
    try:
        return next(decoding) if logits is None else decoding.send(logits)
    except StopIteration as end:
        return end.value
    except RuntimeError as error:
        if isinstance(error.__cause__, StopIteration):
            raise error.__cause__ from None
        raise
