"""Continuous batching: conversations join and leave between the steps of a shared device."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass

from npuw_layer.batching.conversation import Conversation, Submission, infer, piece, reads_prompt
from npuw_layer.batching.request import BatchedRequest
from npuw_layer.batching.schedule import Work, fitting, plan_step
from npuw_layer.batching.slots import SlotModel, SlotToken
from npuw_layer.errors import NpuwError, RequestError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.infer_request import InferRequest
from npuw_layer.ports import Array

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did."""

    read: int = 0
    """Tokens of a prompt."""
    generated: int = 0
    """Conversations that took a token."""
    slots: int = 0
    """Slots of the model that they ran on; 0 if it did not run."""
    capacity: int = 0
    """Positions that its attention spans."""


class ContinuousBatching:
    """Runs conversations side by side on the static models of one LLM.

    ``open`` and what it gives may be used from any thread; steps are made by one at a time. A
    conversation takes a place when it first says something, and keeps it until it is closed; if
    there is none, it waits, first come, first served.

    Args:
        compiled: the static models; NPUW_LLM_BATCH_SLOTS says for how many conversations.
        places: how many conversations hold caches at the same time; 0 is as many as slots.
    """

    def __init__(self, compiled: CompiledLLM, places: int = 0) -> None:
        self._compiled = compiled
        self._sizes = sorted({1, *compiled.slots})
        self._places = places or self._sizes[-1]
        self._unused: list[InferRequest] = []
        self._made = 0
        self._conversations: dict[BatchedRequest, Conversation] = {}
        self._orders = itertools.count()
        self._models: dict[tuple[int, int], SlotModel] = {}
        self._closed = False
        self._changed = threading.Condition()
        """Guards all above but the models, which belong to who makes a step."""
        self._stepping = threading.Lock()
        self._stepper = 0

    def open(self) -> BatchedRequest:
        """Begin a conversation.

        Raises:
            RequestError: the engine was closed.
        """
        request = BatchedRequest(self)
        with self._changed:
            if self._closed:
                raise RequestError("no conversation can begin: the engine was closed")
            self._conversations[request] = Conversation(request)
        return request

    def enqueue(self, request: BatchedRequest, ids: Array, keep: int) -> Future[Array]:
        """Note what a conversation goes on with; see ``BatchedRequest.submit``."""
        with self._changed:
            conversation = self._conversations.get(request)
            if conversation is None or conversation.over:
                raise RequestError("the conversation is over")
            if conversation.submission is not None:
                raise RequestError("the tokens that were submitted last are not read yet")
            conversation.submission = Submission(ids, keep, next(self._orders))
            self._changed.notify_all()
            return conversation.submission.logits

    def leave(self, request: BatchedRequest) -> None:
        """Forget a conversation; its place is given away at the beginning of the next step."""
        with self._changed:
            conversation = self._conversations.get(request)
            if conversation is None:
                return
            conversation.over = True
            submission = conversation.submission
            self._changed.notify_all()
        if submission is not None:
            submission.logits.cancel()

    def wait(self, timeout: float | None = None, patience: float = 0.0) -> bool:
        """Block until a step has something to do.

        Args:
            timeout: seconds after which it is given up; None waits as long as it takes.
            patience: seconds more that are spent on conversations whose turn it is to say
                something, so that they run together with the others.

        Returns:
            Whether there is something to do.
        """
        with self._changed:
            found = self._changed.wait_for(lambda: self._closed or self._has_work(), timeout)
            if patience and found:
                self._changed.wait_for(lambda: self._closed or self._all_spoke(), patience)
            return found and not self._closed

    def step(self) -> StepReport:
        """Read a piece of a prompt, and generate a token for each who is waiting for one.

        What fails, fails the futures that it concerns; a step itself does not.

        Raises:
            RequestError: it is called from a future's callback, within another step.
        """
        if self._stepper == threading.get_ident():
            raise RequestError("a callback submits what comes next; it does not make steps")
        with self._stepping:
            self._stepper = threading.get_ident()
            try:
                return self._step()
            finally:
                self._stepper = 0

    def close(self) -> None:
        """End all conversations, and give memory back."""
        with self._changed:
            self._closed = True
            requests = list(self._conversations)
            self._changed.notify_all()
        for request in requests:
            self.leave(request)
        with self._stepping:
            self._collect()
            for model in self._models.values():
                model.free()
            self._models.clear()

    def _step(self) -> StepReport:
        self._collect()
        active = self._active()
        lengths = self._compiled.lengths
        work = [Work(s.order, reads_prompt(s, lengths)) for _, _, s in active]
        plan = plan_step(work, self._sizes[-1])
        read = 0 if plan.prompt is None else self._read(active[plan.prompt])
        slots, capacity = self._generate([active[number] for number in plan.generate])
        return StepReport(read, len(plan.generate), slots, capacity)

    def _collect(self) -> None:
        """Give up conversations that are over, and give their places to those who wait."""
        with self._changed:
            gone = [one for one in self._conversations.values() if one.over]
            for conversation in gone:
                del self._conversations[conversation.request]
                if conversation.place is not None:
                    conversation.place.reset_state()
                    self._unused.append(conversation.place)
        for conversation in gone:
            if conversation.submission is not None:
                _settle(conversation.submission, RequestError("the conversation was closed"))

    def _active(self) -> list[_Active]:
        """Those who have a place and something to say, first come, first served."""
        found: list[_Active] = []
        for conversation, submission in self._speaking():
            try:
                place = conversation.place or self._free_place()
            except NpuwError as error:
                self._fail(conversation, submission, error)
                continue
            if place is not None and _begins(submission):
                self._take(conversation, place)
                found.append((conversation, place, submission))
        return found

    def _speaking(self) -> list[tuple[Conversation, Submission]]:
        """Those who have something to say, by age; cancelled words are forgotten."""
        with self._changed:
            for one in self._conversations.values():
                if one.submission is not None and one.submission.logits.cancelled():
                    one.submission = None
            speaking = [
                (one, one.submission)
                for one in self._conversations.values()
                if one.submission is not None and not one.over
            ]
        return sorted(speaking, key=lambda one: one[1].order)

    def _free_place(self) -> InferRequest | None:
        """A place that nobody has; None if there is none."""
        if self._unused:
            return self._unused[-1]
        if self._made == self._places:
            return None
        self._unused.append(InferRequest(self._compiled))
        self._made += 1
        return self._unused[-1]

    def _take(self, conversation: Conversation, place: InferRequest) -> None:
        with self._changed:
            conversation.place = place
            if place in self._unused:
                self._unused.remove(place)

    def _has_work(self) -> bool:
        free = (
            self._unused
            or self._made < self._places
            or any(one.over for one in self._conversations.values())
        )
        return any(
            one.submission is not None and (one.place is not None or free)
            for one in self._conversations.values()
        )

    def _all_spoke(self) -> bool:
        return all(
            one.submission is not None
            for one in self._conversations.values()
            if one.place is not None and not one.over
        )

    def _read(self, active: _Active) -> int:
        """Read the next piece of a prompt."""
        conversation, place, submission = active
        count = piece(submission, self._compiled.lengths)
        return self._advance(
            conversation, submission, count, lambda: infer(place, submission, count)
        )

    def _generate(self, everyone: Sequence[_Active]) -> tuple[int, int]:
        """Run a token of each; give the slots and the capacity of the model that did it."""
        room = self._compiled.capacities[-1] - 1
        full = [each for each in everyone if each[2].position >= room]
        others = [each for each in everyone if each[2].position < room]
        slots = fitting(self._sizes, len(others)) or self._sizes[-1]
        alone = full if slots > 1 else everyone
        for conversation, place, submission in alone:
            # A full one is told so here, and whatever is done about it happens.
            self._advance(conversation, submission, 1, lambda p=place, s=submission: infer(p, s, 1))
        if slots > 1:
            return slots, self._generate_together(others, slots)
        return (slots if others else 0), 0

    def _generate_together(self, everyone: Sequence[_Active], slots: int) -> int:
        longest = max(submission.position for _, _, submission in everyone)
        capacity = fitting(self._compiled.capacities, longest + 1)
        assert capacity is not None  # who is full is not among them
        tokens: list[SlotToken] = []
        for _, place, submission in everyone:
            place.cache.truncate(submission.position)
            token = int(submission.ids[submission.read])
            tokens.append(SlotToken(place.cache, token, submission.position))
        try:
            logits = self._model(slots, capacity, everyone[0][1]).run(tokens)
        except NpuwError as error:
            for conversation, _, submission in everyone:
                self._fail(conversation, submission, error)
            return capacity
        for (conversation, _, submission), values in zip(everyone, logits, strict=True):
            self._advance(conversation, submission, 1, lambda v=values: v)
        return capacity

    def _model(self, slots: int, capacity: int, like: InferRequest) -> SlotModel:
        """The model for so many conversations of such a length, made when it is first needed."""
        key = slots, capacity
        if key not in self._models:
            compiled = self._compiled
            loaded = compiled.slots[slots][compiled.capacities.index(capacity)]
            self._models[key] = SlotModel(compiled.device, loaded, compiled.bank, like.cache)
        return self._models[key]

    def _advance(
        self,
        conversation: Conversation,
        submission: Submission,
        count: int,
        compute: Callable[[], Array],
    ) -> int:
        """Note that tokens were read, and fulfil the promise if they were the last."""
        try:
            logits = compute()
        except NpuwError as error:
            self._fail(conversation, submission, error)
            return 0
        submission.read += count
        if not submission.left:
            with self._changed:
                conversation.submission = None
                conversation.request.stored = submission.position
            _settle(submission, logits.copy())
        return count

    def _fail(self, conversation: Conversation, submission: Submission, error: NpuwError) -> None:
        """Break a promise; the conversation is as it was, but for what it gave up itself."""
        _log.info("a conversation of %d tokens failed: %s", submission.position, error)
        with self._changed:
            conversation.submission = None
            conversation.request.stored = submission.keep
        _settle(submission, error)


_Active = tuple[Conversation, InferRequest, Submission]


def _begins(submission: Submission) -> bool:
    """Whether it is still wanted; from now on it cannot be cancelled any more."""
    future = submission.logits
    return future.running() or future.set_running_or_notify_cancel()


def _settle(submission: Submission, result: Array | NpuwError) -> None:
    """Fulfil or break a promise, unless it was cancelled."""
    try:
        if isinstance(result, NpuwError):
            submission.logits.set_exception(result)
        else:
            submission.logits.set_result(result)
    except InvalidStateError:
        pass
