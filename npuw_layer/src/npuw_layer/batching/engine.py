"""Continuous batching: conversations join and leave between the steps of a shared device."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass

from driver_layer.support.bell import Bell
from npuw_layer.backends.protocols import Array
from npuw_layer.batching.participant import Participant, Submission, reads_prompt
from npuw_layer.batching.request import BatchedRequest
from npuw_layer.batching.runner import Outcome, Runner
from npuw_layer.batching.schedule import Work, plan_step
from npuw_layer.errors import NpuwError, RequestError, StateError, TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.token_ids import check_ids
from npuw_layer.llm.trait import Settings
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensors.token_inputs import check_slots

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

    Raises:
        ModelError: the model takes more of a token than its id, or gives more than logits.
    """

    def __init__(self, compiled: CompiledLLM, places: int = 0) -> None:
        check_slots(compiled.token_inputs, [one.name for one in compiled.token_outputs])
        self._compiled, self._vocabulary = compiled, compiled.vocabulary
        self._runner = Runner(compiled)
        self._places = places or self._runner.sizes[-1]
        self._caches: list[Conversation] = []
        """All places; those that no participant has are free, and begin anew."""
        self._conversations: dict[BatchedRequest, Participant] = {}
        self._orders = itertools.count()
        self._closed = False
        self._changed = Bell()
        """Guards all above but the runner, which belongs to who makes a step."""
        self._stepping = threading.Lock()
        self._stepper = 0

    def open(self, adapter: Mapping[str, AnyTensor] | None = None) -> BatchedRequest:
        """Begin a conversation.

        Args:
            adapter: the states that it is held with, by the names that ``query_state`` of a request
                gives them; those that are left out have no effect.

        Raises:
            RequestError: the engine was closed.
            StateError: a state does not fit the model, or the others.
        """
        request = BatchedRequest(self, self._settings(adapter or {}))
        with self._changed.lock:
            if self._closed:
                raise RequestError("no conversation can begin: the engine was closed")
            self._conversations[request] = Participant(request)
        return request

    def _settings(self, states: Mapping[str, AnyTensor]) -> list[Settings | None]:
        """Make the settings of a conversation, one for each of the model's traits; as ``open``."""
        found = [trait.settings() for trait in self._compiled.traits]
        own = [one for one in found if one is not None]
        by_name = {name: one for one in own for name in one.names}
        for name, tensor in states.items():
            if name not in by_name:
                raise StateError(f"the model has no adapter state {name!r}")
            by_name[name].set(name, values_of(tensor))
        for one in own:
            one.check()
        return found

    def enqueue(self, request: BatchedRequest, ids: Array, keep: int) -> Future[Array]:
        """Note what a conversation goes on with; see ``BatchedRequest.submit``."""
        check_ids(ids, self._vocabulary)
        with self._changed.lock:
            conversation = self._conversations.get(request)
            if conversation is None or conversation.over:
                raise RequestError("the conversation is over")
            last = conversation.submission
            if last is not None and not last.logits.done():
                raise RequestError("the tokens that were submitted last are not read yet")
            conversation.submission = Submission(ids, keep, next(self._orders))
            self._changed.ring()
            return conversation.submission.logits

    def leave(self, request: BatchedRequest) -> None:
        """Forget a conversation; its place is given away at the beginning of the next step."""
        with self._changed.lock:
            conversation = self._conversations.get(request)
            if conversation is None:
                return
            conversation.over = True
            submission = conversation.submission
            self._changed.ring()
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
        found = self._changed.wait(lambda: self._closed or self._has_work(), timeout)
        if patience and found:
            self._changed.wait(lambda: self._closed or self._all_spoke(), patience)
        return found and not self._closed

    def step(self) -> StepReport:
        """Read a piece of a prompt, and generate a token for each who is waiting for one.

        What fails, fails the futures that it concerns; a step itself does not.

        Raises:
            RequestError: it is called from a future's callback, within another step.
        """
        self._refuse_within_step("make a step")
        with self._stepping:
            try:
                self._stepper = threading.get_ident()
                return self._step()
            except BaseException:
                if threading.current_thread() is threading.main_thread():
                    self._give_up()  # a signal's handler raised it, as Ctrl-C's does
                raise
            finally:
                self._stepper = 0

    def close(self) -> None:
        """End all conversations, and give memory back.

        Raises:
            RequestError: it is called from a future's callback, within a step.
        """
        self._refuse_within_step("close the engine")
        with self._changed.lock:
            self._closed = True
            requests = list(self._conversations)
            self._changed.ring()
        for request in requests:
            self.leave(request)
        with self._stepping:
            self._collect()
            self._runner.free()

    def _refuse_within_step(self, what: str) -> None:
        """Refuse what would wait for the end of the step that it is called from."""
        if self._stepping.locked() and self._stepper == threading.get_ident():
            raise RequestError(f"a future's callback cannot {what}; it may submit what comes next")

    def _step(self) -> StepReport:
        self._collect()
        active = self._active()
        planned, options = self._compiled.plan, self._compiled.options
        work = [Work(s.order, reads_prompt(s, planned, options)) for _, _, s in active]
        plan = plan_step(work, self._runner.sizes[-1])
        read = 0
        if plan.prompt is not None:
            count, outcome = self._runner.read(active[plan.prompt][1:])
            read = count if self._note(active[plan.prompt], count, outcome) else 0
        speaking = [active[number] for number in plan.generate]
        made = self._runner.generate([each[1:] for each in speaking])
        for each, outcome in zip(speaking, made.outcomes, strict=True):
            self._note(each, 1, outcome)
        return StepReport(read, len(speaking), made.slots, made.capacity)

    def _give_up(self) -> None:
        """Break the promises whose tokens were being read: nobody knows how far it came."""
        error = RequestError("the step that read these tokens was interrupted; submit them again")
        with self._changed.lock:
            places = [(one, one.place, one.submission) for one in self._conversations.values()]
        for conversation, place, submission in places:
            if place is not None and submission is not None and submission.logits.running():
                self._settle((conversation, place, submission), error)

    def _collect(self) -> None:
        """Give up conversations that are over, and give their places to those who wait."""
        with self._changed.lock:
            gone = [one for one in self._conversations.values() if one.over]
        for conversation in gone:
            if conversation.place is not None:
                conversation.place.reset()
            if conversation.submission is not None:
                _settle(conversation.submission, RequestError("the conversation was closed"))
            with self._changed.lock:
                del self._conversations[conversation.request]  # last: its place is free now

    def _active(self) -> list[_Active]:
        """Those who have a place and something to say, first come, first served."""
        found: list[_Active] = []
        for conversation, submission in self._speaking():
            try:
                place = conversation.place or self._free_place()
            except NpuwError as error:
                _log.warning("no place for a conversation: %s", error)
                _settle(submission, error)
                continue
            if place is not None and _begins(submission):
                place.parts.use(conversation.request.settings)
                conversation.place = place
                found.append((conversation, place, submission))
        return found

    def _speaking(self) -> list[tuple[Participant, Submission]]:
        """Return participants with a pending submission, oldest first."""
        with self._changed.lock:
            speaking = [
                (one, one.submission)
                for one in self._conversations.values()
                if one.submission is not None and one.speaks and not one.over
            ]
        return sorted(speaking, key=lambda one: one[1].order)

    def _free_place(self) -> Conversation | None:
        """A place that nobody has; None if there is none."""
        with self._changed.lock:
            taken = {id(one.place) for one in self._conversations.values()}
        unused = next((place for place in self._caches if id(place) not in taken), None)
        if unused is None and len(self._caches) < self._places:
            unused = Conversation(self._compiled, _always_wanted)
            self._caches.append(unused)
        return unused

    def _has_work(self) -> bool:
        having = [one for one in self._conversations.values() if one.place is not None]
        free = len(having) < self._places or any(one.over for one in self._conversations.values())
        return any(
            one.speaks and (one.place is not None or free) for one in self._conversations.values()
        )

    def _all_spoke(self) -> bool:
        return all(
            one.speaks
            for one in self._conversations.values()
            if one.place is not None and not one.over
        )

    def _note(self, active: _Active, count: int, outcome: Outcome | None) -> bool:
        """Note what became of some tokens, and fulfil or break the promise; tell if they are read.

        A promise is fulfilled when the last of its tokens is read. If one is broken, what was
        stored before stays, but for what it gave up itself.
        """
        _, _, submission = active
        failed = isinstance(outcome, NpuwError)
        if failed:
            _log.info("a conversation of %d tokens failed: %s", submission.position, outcome)
        else:
            submission.read += count
        if outcome is not None and (failed or not submission.left):
            self._settle(active, outcome)
        return not failed

    def _settle(self, active: _Active, outcome: Outcome) -> None:
        """Fulfil or break a promise; the conversation may submit what comes next from then on."""
        conversation, _, submission = active
        conversation.request.stored = _stored(active, outcome)
        _settle(submission, outcome if isinstance(outcome, NpuwError) else outcome.copy())
        with self._changed.lock:
            if conversation.submission is submission:
                conversation.submission = None  # what it held is not needed any more


_Active = tuple[Participant, Conversation, Submission]


def _always_wanted() -> None:
    """Who leaves is noticed between the pieces of a prompt."""


def _stored(active: _Active, outcome: Outcome) -> int:
    """Tokens of a conversation after its last words: all if they were read.

    After a failure those that were to stay, or fewer if even they were being read again; and what
    is refused changes nothing.
    """
    conversation, place, submission = active
    if isinstance(outcome, TensorError):
        return conversation.request.stored
    if isinstance(outcome, NpuwError):
        return min(submission.keep, place.history.said)
    return submission.position


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
