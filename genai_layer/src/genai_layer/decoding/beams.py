"""Beam search: several texts grow side by side, and the likeliest ones are continued.

Groups search one after the other; a later one is penalised for the tokens that earlier ones chose
in the same step, which makes its texts different.

Source: docs/reference/genai.md#beam-search. Ours: stop tokens are excluded before min_new_tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.one_sequence import echo
from genai_layer.decoding.reads import Decoding, Read, Task
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.generation_config import GenerationConfig
from genai_layer.generation_fields import StopCriteria
from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import likeliest
from genai_layer.sampling.processors import Logits, rounded
from genai_layer.sampling.running_sums import AsGiven, RunningSums

_SMALLEST, _LARGEST = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max


def repeating_tokens(ids: Sequence[int], size: int) -> npt.NDArray[np.int64]:
    """Return the tokens that would complete a run of ``size`` tokens that the ids already have.

    Args:
        ids: prompt and text.
        size: length of a run, at least 1.
    """
    text = np.array(ids, np.int64)
    if len(text) < max(size, 2):
        return np.empty(0, np.int64)
    runs = np.lib.stride_tricks.sliding_window_view(text, size)
    same = (runs[:, :-1] == text[len(text) - size + 1 :]).all(axis=1)
    return runs[same, -1]


@dataclass(frozen=True, slots=True)
class Beam:
    """Text that may still grow."""

    sequence: GeneratedSequence
    score: np.float32
    """Sum of the log-probabilities."""
    row: int
    """Row of the last inference that it continues."""

    def rated(self, length: int, penalty: float) -> float:
        """Return the score of a text of a length: divided by length ** penalty, finite in f32.

        openvino_genai returns -inf or -0.0 where the power exceeds f32.
        """
        if not length:
            return np.nan
        with np.errstate(over="ignore"):
            power = np.float32(length) ** np.float32(penalty)
        return float(rounded(np.float64(self.score) / power.clip(_SMALLEST, _LARGEST)))


@dataclass(slots=True)
class BeamGroup:
    """Beams that are searched together, and their completed texts."""

    size: int
    config: GenerationConfig
    beams: list[Beam]
    """Growing texts, the likeliest first."""
    completed: list[tuple[float, GeneratedSequence]] = field(
        default_factory=list[tuple[float, GeneratedSequence]]
    )
    """The best completed texts, at most ``size``, the best first."""
    done: bool = False

    def complete(self, beam: Beam, length: int) -> None:
        """Add a complete text, in place of the worst if it is better.

        Args:
            beam: the text, with its score.
            length: number of tokens that rates it.
        """
        penalty = self.config.length_penalty
        beam.sequence.score = beam.rated(len(beam.sequence.tokens), penalty)
        self.completed.append((beam.rated(length, penalty), beam.sequence))
        self.completed.sort(key=lambda each: -each[0])
        del self.completed[self.size :]

    def check_done(self, longest: int) -> None:
        """Mark the group as done if no beam can beat its completed texts.

        Args:
            longest: maximum number of tokens.
        """
        if len(self.completed) < self.size:
            return
        criteria, best = self.config.stop_criteria, self.beams[0]
        if criteria is StopCriteria.EARLY:
            self.done = True
            return
        penalty, length = self.config.length_penalty, len(best.sequence.tokens)
        if criteria is StopCriteria.NEVER and penalty > 0:
            length = longest
        self.done = self.completed[-1][0] >= best.rated(length, penalty)


_Scores = npt.NDArray[np.float32]


def search_beams(task: Task) -> Decoding:
    """Search for the likeliest texts.

    Returns:
        ``num_return_sequences`` texts, highest score first.
    """
    search = _Search(task)
    rows, sources, past = [task.prompt], [0], 0
    while rows:
        logits = (yield Read(rows, past, sources))[:, -1]
        past += len(rows[0])
        watch = Stopwatch()
        search.step(logits, past - len(task.prompt))
        task.raw.sampling_durations.append(watch.microseconds())
        task.times.note()
        rows, sources = search.rows()
    best = search.best()
    for sequence in best:
        sequence.flush()
    task.finish(best)
    return best


class _Search:
    """Groups of beams, and their steps."""

    def __init__(self, task: Task) -> None:
        config = task.config
        self._task, self._config = task, config
        base = task.new_sequence()
        echo(task, base)
        # All beams begin with the same text, so only one of them may be continued first.
        scores = [0.0] + [-np.inf] * (config.num_beams // config.num_beam_groups - 1)
        self._groups = [
            BeamGroup(len(scores), config, [Beam(base, np.float32(each), 0) for each in scores])
            for _ in range(config.num_beam_groups)
        ]
        self._stops = frozenset[int]() if config.ignore_eos else config.stop_token_ids
        if base.ended:
            self._finish()

    def rows(self) -> tuple[list[list[int]], list[int]]:
        """Return the last token of each beam, and the row that the beam continues.

        The beams are renumbered by their places in this list.
        """
        rows: list[list[int]] = []
        sources: list[int] = []
        for group in self._groups:
            for place, beam in enumerate(group.beams):
                group.beams[place] = Beam(beam.sequence, beam.score, len(rows))
                rows.append([beam.sequence.tokens[-1]])
                sources.append(beam.row)
        return rows, sources

    def step(self, logits: Logits, generated: int) -> None:
        """Continue the beams of all groups by one token.

        Args:
            logits: f32 [rows, vocabulary].
            generated: number of tokens that the beams have.
        """
        chosen: list[int] = []
        for group in self._groups:
            if group.done:
                continue
            children = self._children(group, logits, chosen)
            group.check_done(self._task.limits.max_new_tokens)
            group.done = group.done or not children
            group.beams = [] if group.done else children
            chosen.extend(child.sequence.tokens[-1] for child in children)
        if generated + 1 >= self._task.limits.tokens:
            self._finish()

    def best(self) -> list[GeneratedSequence]:
        """Return the best texts of all groups."""
        texts = [text for group in self._groups for _, text in group.completed]
        texts.sort(key=lambda one: -one.score)
        return texts[: self._config.num_return_sequences]

    def _children(self, group: BeamGroup, logits: Logits, chosen: list[int]) -> list[Beam]:
        """Return a group's next beams; complete texts that end with this step."""
        children: list[Beam] = []
        candidates = self._candidates(group, logits, chosen)
        for place, (parent, token, score) in enumerate(candidates):
            sequence = parent.sequence.fork()
            sequence.add(token, float(score))
            beam = Beam(sequence, score, parent.row)
            if sequence.finish_reason is not GenerationFinishReason.STOP:
                children.append(beam)
            elif place < group.size:
                stopped = token in self._stops
                group.complete(beam, len(parent.sequence.tokens) + stopped)
            if len(children) == group.size:
                break
        return children

    def _candidates(
        self, group: BeamGroup, logits: Logits, chosen: list[int]
    ) -> list[tuple[Beam, int, np.float32]]:
        """Return the likeliest continuations, which are enough if half of them end a text."""
        wanted = 2 * group.size
        found: list[tuple[Beam, int, np.float32]] = []
        for beam in group.beams:
            scores = self._scores(beam, logits[beam.row], chosen)
            tokens = likeliest(scores, wanted)
            sums = rounded(np.float64(beam.score) + scores[tokens])
            found.extend((beam, *one) for one in zip(tokens.tolist(), sums, strict=True))
        return sorted(found, key=lambda each: -each[2])

    def _scores(self, beam: Beam, logits: Logits, chosen: list[int]) -> _Scores:
        """Return the scores of a beam's next tokens."""
        config, tokens = self._config, beam.sequence.tokens
        scores = _log_softmax(logits)
        for token in chosen:
            scores[token] = rounded(np.float64(scores[token]) - config.diversity_penalty)
        scores[
            repeating_tokens([*self._task.prompt, *tokens], config.no_repeat_ngram_size)
        ] = -np.inf
        if len(tokens) < config.min_new_tokens:
            scores[[stop for stop in self._stops if stop < len(scores)]] = -np.inf
        return scores

    def _finish(self) -> None:
        """Complete all beams: their length is at a limit."""
        limits = self._task.limits
        full = limits.capacity < limits.max_new_tokens
        reason = GenerationFinishReason.CAPACITY if full else GenerationFinishReason.LENGTH
        for group in self._groups:
            for beam in group.beams:
                beam.sequence.end(reason)
                group.complete(beam, len(beam.sequence.tokens))
            group.beams, group.done = [], True


def _log_softmax(logits: Logits) -> _Scores:
    shifted = logits - logits.max()
    return shifted - np.log(RunningSums(AsGiven(np.exp(shifted))).total)
