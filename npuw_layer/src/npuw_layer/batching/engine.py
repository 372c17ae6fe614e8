"""Continuous batching: conversations join and leave between the steps of a shared device."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future

from driver_layer.support.bell import Bell
from npuw_layer.backends.protocols import Array
from npuw_layer.batching.observe import Observer
from npuw_layer.batching.observed import BatchingState, StepReport
from npuw_layer.batching.participant import Participant, Submission, reads_prompt
from npuw_layer.batching.places import Places
from npuw_layer.batching.request import BatchedRequest
from npuw_layer.batching.runner import Outcome, Runner
from npuw_layer.batching.schedule import plan_step
from npuw_layer.errors import NpuwError, RequestError, StateError, TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.trait import Settings
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.tensors.token_inputs import check_ids, check_slots

_log = logging.getLogger(__name__)


class ContinuousBatching:
    """Engine that runs conversations side by side on the static models of one LLM.

    Any thread may use ``open`` and the requests that it returns; one thread at a time runs a step.
    A conversation takes a place with its first tokens and keeps the place until it is closed. If no
    place is free, it waits: first come, first served. A copy of another conversation never waits:
    if no place is free, it has one of its own until it is closed.

    Args:
        compiled: the static models; NPUW_LLM_BATCH_SLOTS sets their number of slots.
        places: maximum conversations that hold caches at a time; 0 is the number of slots.

    Raises:
        ModelError: the model has inputs per token other than ids, or outputs other than logits.
    """

    def __init__(self, compiled: CompiledLLM, places: int = 0) -> None:
        check_slots(compiled.token_inputs, [one.name for one in compiled.token_outputs])
        self._compiled, self._vocabulary = compiled, compiled.vocabulary
        self._runner = Runner(compiled)
        self._places = Places(compiled, places or self._runner.sizes[-1])
        self._observer = Observer(compiled, self._places.limit)
        self._conversations: dict[BatchedRequest, Participant] = {}
        self._orders = itertools.count()
        self._closed = False
        self._changed = Bell()
        """Lock of all fields above, except the runner: only the thread of the step uses it."""
        self._stepping = threading.Lock()
        self._stepper = 0

    def open(self, adapter: Mapping[str, AnyTensor] | None = None) -> BatchedRequest:
        """Begin a conversation.

        Args:
            adapter: adapter states of the conversation, by the names that a request's
                ``query_state`` returns; omitted states have no effect.

        Raises:
            RequestError: the engine was closed.
            StateError: a state does not fit the model, or the other states.
        """
        request = BatchedRequest(self, self._settings(adapter or {}))
        with self._changed.lock:
            if self._closed:
                raise RequestError("the engine was closed; create another one")
            self._conversations[request] = Participant(request)
        return request

    def _settings(self, states: Mapping[str, AnyTensor]) -> list[Settings | None]:
        """Return a conversation's settings, one for each trait of the model; errors as ``open``."""
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
        """Queue a conversation's next tokens; see ``BatchedRequest.submit``."""
        check_ids(ids, self._vocabulary)
        with self._changed.lock:
            conversation = self._conversations.get(request)
            if conversation is None or conversation.over:
                raise RequestError("the conversation was closed; open another one")
            last = conversation.submission
            if last is not None and not last.logits.done():
                raise RequestError("the last tokens are not read yet; wait for their future")
            conversation.submission = Submission(ids, keep, next(self._orders))
            conversation.rests = False
            if len(ids) > 1 or not keep:
                conversation.prompt_tokens = keep + len(ids)
            self._changed.ring()
            return conversation.submission.logits

    def rest(self, request: BatchedRequest) -> None:
        """Show a conversation as ended until its next tokens; it keeps its place."""
        with self._changed.lock:
            conversation = self._conversations.get(request)
            if conversation is not None:
                self._note_end(conversation)
                conversation.rests = True

    def _note_end(self, conversation: Participant) -> None:
        """Keep what a conversation shows when it ends, or begins to rest."""
        place = conversation.place
        if place is not None and not conversation.over and not conversation.rests:
            self._observer.note_end(self._places.all.index(place), place, conversation)

    def copy(self, request: BatchedRequest, source: BatchedRequest) -> None:
        """Let a conversation continue a copy of another; see ``BatchedRequest.copy_from``."""
        self._refuse_within_step("copy a conversation")
        with self._stepping:
            self._collect()
            target, original = self._resting(request), self._resting(source)
            if original.place is None or target is original or target.submission is not None:
                raise RequestError(
                    "a conversation without pending tokens can copy another one that has stored "
                    "tokens; wait for the futures of both"
                )
            place = target.place or self._places.unused(self._taken()) or self._places.make()
            try:
                place.copy_from(original.place)
                place.parts.use(source.settings)
                place.parts.begin()
            except BaseException:
                request.stored, target.place = 0, None
                self._places.free(place)
                raise
            request.settings, request.stored = source.settings, source.stored
            request.cached_tokens = source.cached_tokens
            target.prompt_tokens, target.place = original.prompt_tokens, place

    def _resting(self, request: BatchedRequest) -> Participant:
        """Return an open conversation none of whose pending tokens is read yet."""
        with self._changed.lock:
            found = self._conversations.get(request)
        if found is None or found.over:
            raise RequestError("the conversation was closed; open another one")
        if found.submission is not None and found.submission.reading is not None:
            raise RequestError("the last tokens are being read; wait for their future")
        return found

    def leave(self, request: BatchedRequest) -> None:
        """Forget a conversation; the next step frees its place first."""
        with self._changed.lock:
            conversation = self._conversations.get(request)
            if conversation is None:
                return
            self._note_end(conversation)
            conversation.over = True
            submission = conversation.submission
            self._changed.ring()
        if submission is not None:
            submission.logits.cancel()

    def wait(self, timeout: float | None = None, patience: float = 0.0) -> bool:
        """Block until a step has something to do.

        Args:
            timeout: seconds until the wait gives up; None waits without limit.
            patience: further seconds to wait for conversations with a place but no pending tokens,
                so that one step runs them together with the others.

        Returns:
            Whether work is pending.
        """
        found = self._changed.wait(lambda: self._closed or self._has_work(), timeout)
        if patience and found:
            self._changed.wait(lambda: self._closed or self._all_spoke(), patience)
        return found and not self._closed

    def step(self) -> StepReport:
        """Run a prefill model, and generate a token for each waiting conversation.

        A failure sets the exception of the affected futures; the step itself does not raise it.

        Raises:
            RequestError: a future's callback called this, within another step.
        """
        self._refuse_within_step("run a step")
        with self._stepping:
            try:
                self._stepper = threading.get_ident()
                began = time.perf_counter()
                report = self._step()
                self._observer.note(report, time.perf_counter() - began)
                return report
            except BaseException:
                if threading.current_thread() is threading.main_thread():
                    self._give_up()  # a signal's handler raised, e.g. Ctrl-C's
                raise
            finally:
                self._stepper = 0

    def observe(self) -> BatchingState:
        """Return the state of all places, and the last step; any thread may call this."""
        with self._changed.lock:
            active = [one for one in self._conversations.values() if not one.over | one.rests]
            owners = {id(one.place): one for one in active}
            places = [(place, owners.get(id(place))) for place in self._places.all]
            waiting = [one for one in owners.values() if one.place is None and one.speaks]
        return self._observer.state(places, len(waiting))

    def execution_report(self) -> Mapping[str, str]:
        """Return a readable report of the last step."""
        return {"blobs": str(self._compiled.origin), **self._observer.report()}

    def close(self) -> None:
        """End all conversations and free their memory.

        Raises:
            RequestError: a future's callback called this, within a step.
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
        """Reject a call from within a step: it would wait for the step to end."""
        if self._stepping.locked() and self._stepper == threading.get_ident():
            raise RequestError(f"a future's callback cannot {what}; it may only submit tokens")

    def _step(self) -> StepReport:
        self._collect()
        active = self._active()
        reading = [reads_prompt(each, self._compiled.plan) for _, _, each in active]
        plan = plan_step(reading, self._runner.sizes[-1])
        read, prompts = 0, [active[number] for number in plan.prompts]
        for number, count, outcome in self._runner.read([each[1:] for each in prompts]):
            read += count if self._note(prompts[number], count, outcome) else 0
        speaking = [active[number] for number in plan.generate]
        made = self._runner.generate([each[1:] for each in speaking])
        for each, outcome in zip(speaking, made.outcomes, strict=True):
            each[0].together = made.shared(each[1])
            self._note(each, 1, outcome)
        programs = tuple(stage.name for stage in self._runner.take_ran())
        return StepReport(read, len(speaking), made.slots, made.capacity, programs)

    def _give_up(self) -> None:
        """Fail the futures of tokens being read, as the number of read tokens is unknown."""
        error = RequestError("the step that read these tokens was interrupted; submit them again")
        with self._changed.lock:
            places = [(one, one.place, one.submission) for one in self._conversations.values()]
        for conversation, place, submission in places:
            if place is not None and submission is not None and submission.logits.running():
                self._settle((conversation, place, submission), error)

    def _collect(self) -> None:
        """Remove closed conversations, which frees their places."""
        with self._changed.lock:
            gone = [one for one in self._conversations.values() if one.over]
        for conversation in gone:
            if conversation.place is not None:
                self._places.free(conversation.place)
            if conversation.submission is not None:
                conversation.submission.settle(RequestError("the conversation was closed"))
            with self._changed.lock:
                del self._conversations[conversation.request]  # last: the place is free now

    def _active(self) -> list[_Active]:
        """Return conversations with a place and pending tokens, oldest submission first."""
        found: list[_Active] = []
        for conversation, submission in self._speaking():
            try:
                place = conversation.place or self._places.take(self._taken())
            except NpuwError as error:
                _log.warning("no place for a conversation: %s", error)
                submission.settle(error)
                continue
            if place is not None and submission.begin():
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

    def _taken(self) -> list[Conversation | None]:
        """Return the places of all conversations."""
        with self._changed.lock:
            return [one.place for one in self._conversations.values()]

    def _has_work(self) -> bool:
        having = [one for one in self._conversations.values() if one.place is not None]
        free = len(having) < self._places.limit or any(
            one.over for one in self._conversations.values()
        )
        return any(
            one.speaks and (one.place is not None or free) for one in self._conversations.values()
        )

    def _all_spoke(self) -> bool:
        return all(
            one.speaks
            for one in self._conversations.values()
            if one.place is not None and not one.over | one.rests
        )

    def _note(self, active: _Active, count: int, outcome: Outcome | None) -> bool:
        """Record the result of some tokens and settle the future; return whether they were read.

        The future is fulfilled when its last token is read. If it fails, tokens stored earlier
        stay, except those that the submission itself dropped.
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
        """Fulfil or fail the future; the conversation may then submit its next tokens."""
        conversation, place, submission = active
        conversation.request.stored = _stored(active, outcome)
        conversation.request.cached_tokens = place.reader.prefill.counts.cached_tokens
        submission.settle(outcome if isinstance(outcome, NpuwError) else outcome.copy())
        with self._changed.lock:
            if conversation.submission is submission:
                conversation.submission = None  # frees the submission's memory


_Active = tuple[Participant, Conversation, Submission]


def _stored(active: _Active, outcome: Outcome) -> int:
    """Return the stored tokens of a conversation after its submission: all if they were read.

    After a failure: the tokens to keep, or fewer if even those were being read again. A rejected
    submission changes nothing.
    """
    conversation, place, submission = active
    if isinstance(outcome, TensorError):
        return conversation.request.stored
    if isinstance(outcome, NpuwError):
        return min(submission.keep, place.history.caller_count)
    return submission.position
