"""Speculative decoding: candidates are verified together, in one inference.

The inference reads the last token and the candidates. The sampler then chooses token by token, as
without candidates; a chosen token that differs from its candidate ends the step, and the rejected
candidates are forgotten.

Programs of several tokens round otherwise than those of one. So before a greedy choice between
nearly equal logits, the last tokens of such steps are read again one by one, as without candidates:
few, as a long text would else take longer than without them. The rounding of tokens before these
remains; it is that of the device, and far smaller than what counts as nearly equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.one_sequence import echo
from genai_layer.decoding.payoff import AlwaysPays
from genai_layer.decoding.reads import Decoding, Drafter, Read, Task
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.sampling.processors import Logits, TokenHistory
from genai_layer.sampling.sampler import Sampler

_FEW = 16
"""Most tokens that are read again before a choice is close."""
_MOST = 64
"""Most tokens that are read again at a close choice."""


def generate_drafted(task: Task, drafter: Drafter) -> Decoding:
    """Generate one text with candidates, and pass it to the sink as it grows."""
    sequence, sampler = task.new_sequence(), task.new_sampler()
    payoff = drafter.count.payoff
    verifier, times = _Verifier(task, sequence, sampler, payoff), _StepTimes(task, drafter)
    echo(task, sequence)
    drafter.begin()
    new, past, exact = task.prompt, 0, 0
    candidates: list[int] = []
    prepare = None if task.constraint is None else sampler.prepare
    while not sequence.ended:
        rows, alone = 1 + len(candidates), not candidates and past == exact
        logits = (yield Read([[*new, *candidates]], past, last=rows, meanwhile=prepare))[0]
        past += len(new)
        exact = past if alone else exact  # tokens that were read as without candidates
        chosen = verifier.choose(logits, candidates, alone)
        drafter.count.note(len(candidates), verifier.accepted)
        past += chosen - 1  # behind a close choice, the last accepted token is read again
        new = sequence.tokens[-1:]
        times.note(chosen, drafted=bool(candidates))
        # Each step adds a token of its own to the candidates.
        most = task.limits.tokens - len(sequence.tokens) - 1
        drafts = most > 0 and not verifier.is_close and not sequence.ended
        candidates = times.draft([*task.prompt, *sequence.tokens], most) if drafts else []
        # Without candidates, a close choice would be the dearer the later it comes.
        waits = times.paused or (payoff.expects_close and not candidates)
        repairs = drafts and waits and 0 < past - exact <= _FEW
        if verifier.is_close or repairs:
            exact = max(exact, past - _MOST)
            for token in sequence.tokens[exact - len(task.prompt) : -1]:
                yield Read([[token]], exact)
                exact += 1
            times.note(0)
    task.sink.end(sequence.flush())
    drafter.finish()
    task.finish([sequence])
    return [sequence]


class _StepTimes:
    """Times of the steps of a text, by which the payoff of candidates is known."""

    def __init__(self, task: Task, drafter: Drafter) -> None:
        self._model, self._drafter = task.model, drafter
        self._payoff = drafter.count.payoff
        self._payoff.begin()
        self._inferred: float | None = None
        self._reads, self._drafting = 0, 0.0
        self.paused = False
        """True if the next step has no candidates because they do not pay."""

    def note(self, tokens: int, drafted: bool = False) -> None:
        """Note the time since the last step, unless it is that of the prompt.

        Args:
            tokens: tokens that it resulted in; 0 for those that are read again.
            drafted: whether the step had candidates.
        """
        now = self._model.inferred
        took = None if self._inferred is None else now - self._inferred
        self._inferred = now
        if took is None:
            return
        if drafted:
            self._payoff.note_drafted(took, tokens, self._reads, self._drafting)
        elif tokens:
            self._payoff.note_plain(took)
        else:
            self._payoff.note_again(took)

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        """Return candidates if they are expected to pay; see ``Drafter.draft``."""
        drafter, payoff = self._drafter, self._payoff
        self._reads = drafter.reads(tokens)
        self.paused = not payoff.allows(self._reads) and not (
            payoff.allows(0, likely=True) and drafter.foretold(tokens)
        )
        if self.paused:
            return []
        watch = Stopwatch()
        candidates = drafter.draft(tokens, most)
        self._drafting = watch.microseconds()
        return candidates


class _Verifier:
    """Choice of the tokens of each step."""

    def __init__(
        self, task: Task, sequence: GeneratedSequence, sampler: Sampler, payoff: AlwaysPays
    ) -> None:
        self._payoff = payoff
        self._task, self._sequence, self._sampler = task, sequence, sampler
        self._history = TokenHistory(task.prompt, sequence.tokens)
        self._inferences = len(task.raw.token_infer_durations)
        """Inferences whose duration is noted with the tokens that they resulted in."""
        self.accepted = 0
        """Candidates that the last step accepted."""
        self.is_close = False
        """True if the last step ended at a close choice."""

    def choose(self, logits: Logits, candidates: Sequence[int], exact: bool) -> int:
        """Choose tokens until one differs from its candidate, the text ends, or a choice is close.

        Args:
            logits: f32 [1 + candidates, vocabulary].
            candidates: candidates that the logits after the first follow.
            exact: True if the logits are those without candidates, so that no choice is too close.

        Returns:
            The number of chosen tokens.
        """
        task, sequence = self._task, self._sequence
        before, ready = len(sequence.tokens), task.times.now()
        self.accepted, self.is_close = 0, False
        for row, candidate in zip(logits, [*candidates, None], strict=True):
            if not exact and self._is_close(row):
                break
            watch = Stopwatch()
            token = self._sampler.next_token(row, self._history)
            task.raw.sampling_durations.append(watch.microseconds())
            text = sequence.add(token, self._sampler.score, self._sampler.alternatives)
            sequence.heed(task.sink.write(token, text))
            self.accepted += token == candidate
            if sequence.ended or token != candidate:
                break
        chosen = len(sequence.tokens) - before
        if chosen:
            task.times.note(chosen, ready)
            self._join_durations()
        return chosen

    def _is_close(self, logits: Logits) -> bool:
        self.is_close = self._sampler.is_close(logits, self._history)
        self._payoff.note_choice(self.is_close)
        return self.is_close

    def _join_durations(self) -> None:
        """Add the durations of inferences without tokens of their own to that of the last one."""
        durations = self._task.raw.token_infer_durations
        durations[self._inferences :] = [sum(durations[self._inferences :])]
        self._inferences = len(durations)
