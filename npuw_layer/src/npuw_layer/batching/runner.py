"""Execution of a step's choices: a prefill run, and a token of each of some conversations."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from npuw_layer.backends.protocols import Array
from npuw_layer.batching.participant import Submission, Together
from npuw_layer.batching.schedule import fitting
from npuw_layer.batching.shared_prefill import share_prefill
from npuw_layer.batching.slots import SlotModel, SlotTokens
from npuw_layer.errors import NpuwError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.lm_head import LMHead
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.llm.request.reader import Logits

Speaker = tuple[Conversation, Submission]
"""A conversation's caches and its pending tokens."""

Outcome = Array | NpuwError
"""Logits f32 [V], which the next run may overwrite, or the error instead of logits."""


class ReadTokens(NamedTuple):
    """Outcome of a prompt's tokens."""

    conversation: int
    """Index among the conversations with a prompt to read."""
    tokens: int
    """Number of tokens."""
    outcome: Outcome | None
    """Outcome of the last token; None if more chunks follow."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Outcome of each conversation's token; slots and positions of the model that ran.

    Both numbers are 0 if no model ran; positions are also 0 if conversations ran one by one.
    """

    outcomes: Sequence[Outcome] = ()
    slots: int = 0
    capacity: int = 0
    together: Collection[Conversation] = ()
    """Conversations that ran in one model."""

    def shared(self, place: Conversation) -> Together | None:
        """Return the model that a conversation shared; None if it ran alone."""
        shares = place in self.together
        return Together(len(self.together), self.capacity) if shares else None


class Runner:
    """Models for several conversations, each created on first use.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        self._compiled = compiled
        self._plan = compiled.plan
        self._models: dict[Stage, SlotModel] = {}
        self._head: LMHead | None = None
        self.sizes = compiled.plan.slots
        """Slot counts of the available models, ascending."""
        self._ran: list[Stage] = []

    def take_ran(self) -> list[Stage]:
        """Return the static models that ran since the last call, in order."""
        ran, self._ran = self._ran, []
        return ran

    @contextmanager
    def _noting(self, place: Conversation) -> Generator[None]:
        """Note the static models that a conversation runs, prefill models first, also on errors."""
        counts, others = place.reader.prefill.counts, place.reader.ran
        chunks_before, others_before = len(counts.chunks), len(others)
        try:
            yield
        finally:
            # A new prompt, and a new inference, begin with records of their own.
            new_counts, ran = place.reader.prefill.counts, place.reader.ran
            chunks = new_counts.chunks[chunks_before if new_counts is counts else 0 :]
            self._ran += [chunk.stage for chunk in chunks]
            self._ran += ran[others_before if ran is others else 0 :]

    def read(self, waiting: Sequence[Speaker]) -> list[ReadTokens]:
        """Read the next chunk of the oldest prompt, or that prompt together with other short ones.

        Args:
            waiting: conversations with a prompt to read, the oldest first.
        """
        if not waiting:
            return []
        submissions = [submission for _, submission in waiting]
        shared = share_prefill(submissions, self._plan, self._compiled.options)
        if shared is None:
            return [ReadTokens(0, *self._read(*waiting[0]))]
        together = [waiting[number] for number in shared.prompts]
        outcomes = self._read_together(together, shared.stage)
        return [
            ReadTokens(number, submission.left, outcome)
            for number, (_, submission), outcome in zip(
                shared.prompts, together, outcomes, strict=True
            )
        ]

    def _read(self, place: Conversation, submission: Submission) -> tuple[int, Outcome | None]:
        """Read the next chunk of a prompt; see ``ReadTokens``."""
        if submission.reading is None:
            submission.reading = place.reading(submission.tokens(submission.left))
        try:
            with self._noting(place):
                return next(submission.reading), None
        except StopIteration as end:
            return submission.left, _last(end.value)
        except NpuwError as error:
            return submission.left, error

    def _read_together(self, speakers: Sequence[Speaker], stage: Stage) -> list[Outcome]:
        """Read the prompts of new conversations in one run."""
        begun = [_begun(*each) for each in speakers]
        places = [place for place, _ in speakers]
        prompts = [
            (place, new)
            for place, new in zip(places, begun, strict=True)
            if isinstance(new, NewTokens)
        ]
        made = iter(self._run(prompts, stage) if prompts else ())
        return [next(made) if isinstance(new, NewTokens) else new for new in begun]

    def generate(self, everyone: Sequence[Speaker]) -> Generated:
        """Run a token of each conversation, up to the number of slots of the largest model.

        A conversation with a full cache runs alone: there it fails, or its overflow policy applies.
        """
        outcomes = [self._before(*each) for each in everyone]
        others = [each for each, made in zip(everyone, outcomes, strict=True) if made is None]
        together = self._together(others)
        found = iter(together.outcomes)
        all_made = [next(found) if made is None else made for made in outcomes]
        return replace(together, outcomes=all_made)

    def free(self) -> None:
        """Free the models' memory."""
        for model in self._models.values():
            model.free()
        self._models.clear()
        if self._head is not None:
            self._head.free()
            self._head = None

    def _before(self, place: Conversation, submission: Submission) -> Outcome | None:
        """Rewind to the token's position; return its outcome if it must run alone, else None."""
        try:
            place.rewind(submission.position)
        except NpuwError as error:
            return error
        return self._alone(place, submission) if place.is_full else None

    def _together(self, speakers: Sequence[Speaker]) -> Generated:
        """Run a token of each conversation on the smallest model with enough slots and rows."""
        if not speakers:
            return Generated()
        slots = fitting(self.sizes, len(speakers)) or self.sizes[-1]
        if slots == 1:
            return Generated([self._alone(*each) for each in speakers], 1)
        capacities = self._plan.capacities
        reach = max(place.cache.rows.reach for place, _ in speakers)
        capacity = fitting(capacities, reach + 1) or capacities[-1]
        tokens = [(place, place.history.kept(new.tokens(1))) for place, new in speakers]
        outcomes = self._run(tokens, Stage(StageKind.GENERATE, 1, capacity - 1, slots))
        return Generated(outcomes, slots, capacity, [place for place, _ in speakers])

    def _run(
        self, everyone: Sequence[tuple[Conversation, NewTokens]], stage: Stage
    ) -> list[Outcome]:
        """Run tokens of each of some conversations on the model of a stage."""
        tokens = [SlotTokens(place.cache, place.parts, new) for place, new in everyone]
        model = self._model(stage, tokens[0])
        try:
            found = model.run(tokens)
        except NpuwError as error:
            return [error] * len(everyone)
        self._ran += [stage] if self._head is None else [stage, self._head.last]
        for place, new in everyone:
            place.note_shared(new, stage)
        return [*found]

    def _model(self, stage: Stage, like: SlotTokens) -> SlotModel:
        if stage not in self._models:
            compiled = self._compiled
            loaded = compiled.models[stage]
            head = self._lm_head()
            model = SlotModel(compiled.device, loaded, compiled.bank, like.cache, head)
            self._models[stage] = model
        return self._models[stage]

    def _lm_head(self) -> LMHead | None:
        """Return the LM head for the hidden states of all slots; None if each model has its own."""
        compiled = self._compiled
        if self._head is None and self._plan.heads:
            stages = [stage for stage in self._plan.heads if stage.tokens in self.sizes[1:]]
            # No parts: the options exclude traits with variables in an LM head for several slots.
            self._head = LMHead(compiled, stages, ConversationParts())
        return self._head

    def _alone(self, place: Conversation, submission: Submission) -> Outcome:
        """Run a token of one conversation."""
        try:
            with self._noting(place):
                return _last(place.infer(submission.tokens(1)))
        except NpuwError as error:
            return error


def _begun(place: Conversation, submission: Submission) -> NewTokens | NpuwError:
    """Begin a conversation whose prompt is read together with others'; return the prompt."""
    try:
        return place.begin_shared(submission.tokens(submission.left))
    except NpuwError as error:
        return error


def _last(logits: Logits) -> Array:
    """Return the logits of the last token, f32 [V]."""
    assert logits is not None  # no target was given
    return logits[0, -1]
