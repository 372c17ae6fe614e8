"""Conversation with an LLM: prefill reads prompts, generate reads few tokens.

``life_cycle.TABLE`` lists the effect of tokens in each state. The rules are those of NPUW's
llm_infer_request (docs/reference/npuw.md#starting-and-continuing, docs/reference/npuw.md#prefill,
docs/reference/npuw.md#generation): several tokens at the first position begin a new conversation.
All others continue it; if their positions begin earlier, a rewind comes first. A rewind is exact to
any depth, since each inference makes its masks from the stored tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import PromptTooLong
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.plan.chunks import Chunk
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.admission import Admission, check_rewind
from npuw_layer.llm.request.continuation import Continuation
from npuw_layer.llm.request.history import History, SavedHistory
from npuw_layer.llm.request.life_cycle import TABLE, Act, Event, State
from npuw_layer.llm.request.lm_head import LogitsTarget
from npuw_layer.llm.request.make_cache import make_cache
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.llm.request.reader import Logits, Reader, Reading, finished

_log = logging.getLogger(__name__)


class Conversation:
    """State of one request, and the static models that it runs on.

    Args:
        compiled: the static models, which stay unchanged.
        check_wanted: called before each run of a program; raises to end the inference there.
    """

    def __init__(self, compiled: CompiledLLM, check_wanted: Callable[[], None]) -> None:
        self.compiled = compiled
        self._options, self._plan = compiled.options, compiled.plan
        self.cache = make_cache(compiled)
        rereads = self._options.on_full == "TRUNCATE" or any(t.rereads for t in compiled.traits)
        self.history = History(compiled.token_inputs, rereads)
        self.parts = ConversationParts.of(compiled, self.cache, self.history)
        self.reader = self._make_reader(check_wanted)
        self.continuation = Continuation(self._options.enable_continuous_prefill)
        self._admission = Admission(compiled.options, compiled.plan, compiled.token_inputs)

    @property
    def state(self) -> State:
        """State, derived from the stored tokens."""
        if not self.history.caller_count:
            return State.IDLE
        if self.reader.prefill.unfinished:
            return State.PREFILLING
        return State.FULL if self.is_full else State.GENERATING

    @property
    def is_full(self) -> bool:
        """True if no variant has room for one more token; a sliding cache is never full."""
        slides = self._options.on_full == "SLIDE"
        return not slides and self.cache.rows.tokens >= self._plan.generate[-1].past

    def infer(self, tokens: NewTokens, target: LogitsTarget | None = None) -> Logits:
        """Run on new tokens.

        Args:
            tokens: tokens with the caller's mask and positions.
            target: device memory for the LM head's logits, if the head makes as many rows.

        Returns:
            Logits of the last tokens, as many as ``rows_of`` returns; the next inference overwrites
            them. None if they are in the target.

        Raises:
            TensorError: positions do not continue the stored tokens, or the mask does not fit.
            PromptTooLong, TooManyTokens, CapacityError: there is no room for the tokens.
            InferenceCancelled: the inference was cancelled; tokens read so far stay.
            DeviceError: the device failed.
        """
        event = self.check(tokens)
        if event is Event.STEP:
            return self._step(self._go_on(tokens), target)
        return finished(self._read(event, tokens, target))

    def reading(self, tokens: NewTokens) -> Reading:
        """Run on new tokens, yielding after each prompt chunk so that other conversations may run.

        Args:
            tokens: as for ``infer``.

        Yields:
            The number of tokens read since the last yield. Until the generator returns or is
            closed, the conversation must do nothing else. If it is closed, tokens read so far stay.

        Returns:
            The logits, as ``infer``; raises the same errors.
        """
        event = self.check(tokens)
        if event is Event.STEP:
            return self._step(self._go_on(tokens), None)
        return (yield from self._read(event, tokens, None))

    def begin_shared(self, tokens: NewTokens) -> NewTokens:
        """Begin a conversation with a prompt that a model reads together with others'.

        Raises:
            TensorError: as ``infer``.
        """
        self.check(tokens)
        return self._begin(tokens)

    def note_shared(self, tokens: NewTokens, stage: Stage) -> None:
        """Record tokens that a model has read together with others'."""
        self.history.extend(tokens)
        if stage.kind is StageKind.PREFILL:
            self.reader.prefill.counts.chunks.append(Chunk(stage, len(tokens), in_place=False))
            self.reader.generate.select()

    def rows_of(self, tokens: NewTokens) -> int:
        """Return the number of last tokens that will have logits."""
        return len(tokens) if self._admission.event_of(tokens, self.history) is Event.STEP else 1

    def check(self, tokens: NewTokens) -> Event:
        """Check new tokens as ``infer`` does first, and classify them; nothing else changes.

        Raises:
            TensorError: positions do not continue the stored tokens, or the mask does not fit.
            PromptTooLong, TooManyTokens, CapacityError: there is no room for the tokens.
        """
        self.parts.begin()
        self.reader.begin()
        begin, history = int(tokens.positions.flat[0]), self.history
        if not history.caller_count:
            history.begin(begin)
        elif history.is_unknown:  # rows were set from outside: the mask has their number
            history.first_position = begin - tokens.stored
        keep, event = history.place_of(tokens), self._admission.event_of(tokens, history)
        self.continuation.check(tokens, keep)
        self._admission.check_place(tokens, keep, history.caller_count)
        if event is not Event.PROMPT:
            self._admission.check_room(history.kept_of(keep), len(tokens))
        self.parts.check(tokens, keep, prompt=event is not Event.STEP)
        limit = self._admission.longest_prompt
        if event is Event.PROMPT and limit < len(tokens) and self._options.on_full == "SLIDE":
            # Steps read these tokens after the others.
            self.parts.check(tokens.part(limit, len(tokens)), limit, prompt=True)
        return event

    def _go_on(self, tokens: NewTokens) -> NewTokens:
        """Rewind to where tokens continue; return them with mask and positions of kept tokens."""
        self.rewind(self.history.place_of(tokens))
        self.continuation.end()
        tokens = self.history.kept(tokens)
        self.reader.reread(tokens.mask)
        return tokens

    def _step(self, tokens: NewTokens, target: LogitsTarget | None) -> Logits:
        """Run a generate step after the stored tokens."""
        act = TABLE[self.state, Event.STEP].act
        if act is Act.START:
            self.reader.start(len(tokens))
        elif act is Act.MAKE_ROOM:
            tokens = self.reader.make_room(tokens, self._plan.generate[-1].past)
        return self.reader.step(tokens, target)

    def _read(self, event: Event, tokens: NewTokens, target: LogitsTarget | None) -> Reading:
        """Read a prompt, from the beginning or after the stored tokens."""
        rows = self.rows_of(tokens)
        if event is Event.TEXT:
            tokens = self._go_on(tokens)
            self.reader.prefill.forget()
        if TABLE[self.state, event].act is Act.BEGIN:
            tokens = self._begin(tokens)
        stored, limit = self.cache.rows, self._admission.longest_prompt
        room = limit - stored.tokens if stored.plain else 0
        if len(tokens) > room and self._options.on_full == "SLIDE":
            return (yield from self.reader.slide(tokens, max(room, 0), target))
        if len(tokens) > room:
            tokens = self.reader.make_room(tokens, limit - len(tokens))
        return (yield from self.reader.prompt(tokens, rows, target))

    def _begin(self, tokens: NewTokens) -> NewTokens:
        """Forget all stored tokens; drop the middle of a prompt that is too long (TRUNCATE)."""
        limit, count, sinks = self._admission.longest_prompt, len(tokens), self._options.sink_tokens
        on_full = self._options.on_full
        if count > limit and on_full == "ERROR":
            raise PromptTooLong(count, limit)
        self.reset(min(count, limit))
        self.reader.prefill.forget()
        self.history.begin(int(tokens.positions.flat[0]))
        if count <= limit or on_full == "SLIDE":
            return tokens
        _log.warning("a prompt of %d tokens: %d of them were dropped", count, count - limit)
        return self.history.drop(tokens, limit - sinks, sinks)

    def rewind(self, count: int) -> None:
        """Keep only the first ``count`` tokens, in the caller's count.

        Raises:
            TensorError: the last token to keep was dropped or replaced; nothing is forgotten.
            StateError: a part must reread tokens that are unknown; nothing is forgotten.
        """
        kept = self.history.kept_of(count)
        check_rewind(count, kept, self.cache.rows, self.parts.known(kept), self.history.unknown)
        self.history.rewind(count)
        self.cache.truncate(kept)
        self.parts.rewind(kept)
        self.reader.prefill.unfinished = False

    def reset(self, tokens: int = 1) -> None:
        """Begin a new conversation; ``tokens`` is its expected number of first tokens."""
        self.cache.reset(tokens)
        self.parts.forget()
        self.history.begin(0)
        self.continuation.end()

    def hold(self, tokens: int) -> None:
        """Set the number of stored tokens; their rows are set from outside."""
        self.history.hold(tokens)
        self.parts.hold(tokens)

    def restore(
        self,
        saved: SavedHistory,
        numbers: Array,
        rows: Mapping[str, Array],
        tensors: Mapping[str, Array],
    ) -> None:
        """Continue another conversation.

        Args:
            saved: its token history.
            numbers: numbers of the stored tokens, ascending, i64 [n].
            rows: rows of each variable of K and V, [n, heads, width].
            tensors: value of each variable of the parts.

        Raises:
            StateError: no token could follow; nothing has changed.
        """
        self._admission.check_saved(saved)
        self.cache.replace(numbers, rows)
        self.history.restore(saved)
        self._restore_parts(tensors)
        self.reader.generate.select()

    def copy_from(self, other: Conversation) -> None:
        """Continue a copy of another conversation with the same static models.

        Settings such as adapters are not copied.

        Raises:
            DeviceError: device memory is exhausted.
        """
        self.cache.copy_from(other.cache)
        self.history.copy_from(other.history)
        self._restore_parts(other.parts.tensors())
        self.reader.copy_from(other.reader)

    def _restore_parts(self, tensors: Mapping[str, Array]) -> None:
        """Take the variables of the parts; tokens must have been restored before."""
        self.parts.hold(self.history.count)
        for name, held in self.parts.tensors().items():
            held[...] = tensors[name]
        self.continuation.end()

    def _make_reader(self, check_wanted: Callable[[], None]) -> Reader:
        """Make the reader of this conversation's tokens."""
        return Reader(self.compiled, self.cache, self.history, self.parts, check_wanted)
