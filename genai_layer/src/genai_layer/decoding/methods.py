"""Choice of the decoding method; several texts after one prompt, sampled side by side.

Source: docs/reference/genai.md#several-sequences. Ours: penalties count each text's own tokens.
"""

from __future__ import annotations

from functools import partial

from genai_layer.decoding.beams import search_beams
from genai_layer.decoding.drafted import generate_drafted
from genai_layer.decoding.full_cache import truncated
from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.one_sequence import echo, generate_one
from genai_layer.decoding.reads import Decoding, Read, Task, complete
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.sampling.processors import Logits, TokenHistory
from genai_layer.sampling.sampler import Sampler


class _Sampled:
    """One of the texts."""

    def __init__(self, task: Task, sampler: Sampler) -> None:
        self.sequence = task.new_sequence()
        echo(task, self.sequence)
        self.sampler = sampler
        self._history = TokenHistory(task.prompt, self.sequence.tokens)

    def sample(self, logits: Logits) -> None:
        """Choose the text's next token."""
        token = self.sampler.next_token(logits, self._history)
        self.sequence.add(token, self.sampler.score, self.sampler.alternatives)


def _prepare(texts: list[_Sampled]) -> None:
    for text in texts:
        text.sampler.prepare()


def generate_several(task: Task) -> Decoding:
    """Sample ``num_return_sequences`` texts, all with the same draws.

    Returns:
        The texts, highest score first.
    """
    sampler = task.new_sampler()
    texts = [_Sampled(task, sampler.fork()) for _ in range(task.config.num_return_sequences)]
    running, rows, sources, past = texts, [task.prompt], [0], 0
    while running and not running[0].sequence.ended:
        prepare = None if task.constraint is None else partial(_prepare, running)
        logits = (yield Read(rows, past, sources, prepare))[:, -1]
        watch = Stopwatch()
        for place, text in enumerate(running):
            text.sample(logits[place if past else 0])
        task.raw.sampling_durations.append(watch.microseconds())
        # As in openvino_genai, the first tokens, of one row of logits, count as one.
        task.times.note(len(running) if past else 1)
        past += len(rows[0])
        kept = [place for place, text in enumerate(running) if not text.sequence.ended]
        sources = kept if past > len(task.prompt) else [0] * len(kept)
        running = [running[place] for place in kept]
        rows = [[text.sequence.tokens[-1]] for text in running]
    sequences = [text.sequence for text in texts]
    for sequence in sequences:
        sequence.flush()
    task.finish(sequences)
    return sorted(sequences, key=lambda one: -one.score)


def decode(task: Task) -> list[GeneratedSequence]:
    """Continue a prompt by the method that its parameters select.

    Returns:
        ``num_return_sequences`` texts, highest score first.

    Raises:
        RuntimeFailure: the runtime failed.
    """
    return complete(start(task), task.model)


def start(task: Task) -> Decoding:
    """Begin to continue a prompt by the method that its parameters select."""
    if task.config.is_beam_search():
        return search_beams(task)
    if task.config.num_return_sequences > 1:
        return generate_several(task)
    if task.drafter is not None:
        return generate_drafted(task, task.drafter)
    if task.truncation is not None:
        return truncated(generate_one(task), task.truncation)
    return generate_one(task)
