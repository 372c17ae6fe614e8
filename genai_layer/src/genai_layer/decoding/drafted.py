"""Speculative decoding: candidates are verified together, in one inference.

The inference reads the last token and the candidates. The sampler then chooses token by token, as
without candidates; a chosen token that differs from its candidate ends the step, and the rejected
candidates are forgotten. So neither the text nor its score depends on the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.one_sequence import echo
from genai_layer.decoding.reads import Decoding, Read
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.decoding.task import Drafter, Task
from genai_layer.sampling.processors import Logits, TokenHistory
from genai_layer.sampling.sampler import Sampler


def generate_drafted(task: Task, drafter: Drafter) -> Decoding:
    """Generate one text with candidates, and pass it to the sink as it grows."""
    sequence, sampler = task.new_sequence(), task.new_sampler()
    verifier = _Verifier(task, sequence, sampler)
    echo(task, sequence)
    drafter.begin()
    new, past = task.prompt, 0
    candidates: list[int] = []
    prepare = None if task.constraint is None else sampler.prepare
    while not sequence.ended:
        rows = 1 + len(candidates)
        logits = (yield Read([[*new, *candidates]], past, last=rows, meanwhile=prepare))[0]
        past += len(new)
        accepted = verifier.choose(logits, candidates)
        drafter.count.note(len(candidates), accepted)
        if sequence.ended:
            break
        past += accepted
        new = sequence.tokens[-1:]
        # Each step adds a token of its own to the candidates.
        most = task.limits.tokens - len(sequence.tokens) - 1
        candidates = drafter.draft([*task.prompt, *sequence.tokens], most) if most > 0 else []
    task.sink.end(sequence.flush())
    drafter.finish()
    task.finish([sequence])
    return [sequence]


class _Verifier:
    """Choice of the tokens of each step."""

    def __init__(self, task: Task, sequence: GeneratedSequence, sampler: Sampler) -> None:
        self._task, self._sequence, self._sampler = task, sequence, sampler
        self._history = TokenHistory(task.prompt, sequence.tokens)

    def choose(self, logits: Logits, candidates: Sequence[int]) -> int:
        """Choose tokens until one differs from its candidate, or the text ends.

        Args:
            logits: f32 [1 + candidates, vocabulary].
            candidates: candidates that the logits after the first follow.

        Returns:
            The number of accepted candidates.
        """
        task, sequence = self._task, self._sequence
        before, ready, accepted = len(sequence.tokens), task.times.now(), 0
        for row, candidate in zip(logits, [*candidates, None], strict=True):
            watch = Stopwatch()
            token = self._sampler.next_token(row, self._history)
            task.raw.sampling_durations.append(watch.microseconds())
            sequence.heed(task.sink.write(token, sequence.add(token, self._sampler.score)))
            accepted += token == candidate
            if sequence.ended or token != candidate:
                break
        task.times.note(len(sequence.tokens) - before, ready)
        return accepted
