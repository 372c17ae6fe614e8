"""A conversation with an LLM: prompts go through prefill, few tokens through generate.

The rules are those of NPUW's llm_infer_request (fact sheet npuw §c.1, §c.2, §c.6): several tokens
at the first position are a new conversation; all others go on with it, or, if their positions begin
earlier, first forget what follows. That is exact to any depth: masks are made from what is stored,
each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import numpy as np

from npuw_layer.backends.protocols import Array, Memory
from npuw_layer.errors import PromptTooLong, StateError, TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.make_cache import make_cache
from npuw_layer.llm.plan.stages import Kind, choose_prefill
from npuw_layer.llm.request.admission import Admission
from npuw_layer.llm.request.answer import Answer, Answering, Reading, finished
from npuw_layer.llm.request.continuation import Continuation
from npuw_layer.llm.request.generate import Generate
from npuw_layer.llm.request.history import History, Said
from npuw_layer.llm.request.lm_head import LMHead
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.prefill import Counts, Prefill
from npuw_layer.llm.request.request_buffers import JoinedBuffers, ProgramBuffers, RequestBuffers
from npuw_layer.llm.request.token_inputs import TokenInput
from npuw_layer.llm.request.token_outputs import Gathered
from npuw_layer.traits.linear_states.recall import check_recall, recalled
from npuw_layer.traits.linear_states.states import LinearStates
from npuw_layer.traits.lora.buffers import AdapterBuffers
from npuw_layer.traits.lora.values import AdapterValues
from npuw_layer.traits.trees.candidates import Candidates
from npuw_layer.traits.trees.tree_mask import check_read_in_order

_log = logging.getLogger(__name__)


class Conversation:
    """The state of one request, and the static models that it runs on.

    Args:
        compiled: the static models; nothing here changes them.
        check_wanted: called before each run of a program; raises to end the inference there.
    """

    def __init__(self, compiled: CompiledLLM, check_wanted: Callable[[], None]) -> None:
        self.compiled = compiled
        self._options = compiled.options
        self._plan = compiled.plan
        device, models = compiled.device, compiled.models
        self.cache = make_cache(compiled)
        heads = {stage: models[stage] for stage in self._plan.own_heads}
        self.buffers = self._make_buffers()
        self.states = LinearStates(device, compiled.linear_caches)
        """What layers without K and V keep."""
        self.adapters = AdapterValues(compiled.adapter_shapes)
        """What is wanted; it counts from the next inference on."""
        self.gathered = Gathered(compiled.token_outputs)
        """What outputs beside the logits gave for the tokens of the last inference."""
        own = JoinedBuffers(self.buffers, self.states)
        self._prefill = Prefill(compiled, self.cache, own, self.gathered, check_wanted)
        self._generate = self._make_generate(own)
        self._head = LMHead(device, heads, self.buffers, compiled.bank) if heads else None
        self._admission = Admission(compiled.options, compiled.plan, self.token_inputs)
        rereads = self._options.on_full == "TRUNCATE" or bool(self.states.names)
        self.history = History(self.token_inputs, rereads)
        self.continuation = Continuation(self._options.enable_continuous_prefill)
        self.candidates = Candidates(self.cache, self.history)
        self._check_wanted = check_wanted
        self._prepare()

    @property
    def token_inputs(self) -> tuple[TokenInput, ...]:
        """What the model wants of each new token."""
        return self._generate.token_inputs

    @property
    def counts(self) -> Counts:
        """What the last prompt took."""
        return self._prefill.counts

    @property
    def variant(self) -> int:
        """The number of the generate variant in use."""
        return self._generate.variant

    def run(self, tokens: NewTokens) -> Array:
        """Run on new tokens.

        Args:
            tokens: with the caller's mask and positions.

        Returns:
            Logits f32 [1, n, V] of as many of the last tokens as generate takes at once; of the
            last one alone after a prompt.

        Raises:
            TensorError: positions do not continue what is stored, or the mask does not fit.
            PromptTooLong, TooManyTokens, CapacityError: it is too much.
            InferenceCancelled: it is no longer wanted; what was read so far stays.
            DeviceError: the device failed.
        """
        return self.logits(self.answer(tokens))

    def answer(self, tokens: NewTokens) -> Answer:
        """Run on new tokens, up to their logits; it raises what ``run`` does."""
        return finished(self._answering(tokens))

    def logits(self, answer: Answer) -> Array:
        """Compute the logits of the last answer; the next inference overwrites them."""
        found = answer.submodel.output(answer.rows)
        if answer.submodel.has_head or self._head is None:
            return found
        return self._head.logits(found)

    def write_logits(self, answer: Answer, memory: Memory, offset: int) -> bool:
        """Let the device write the logits of the last answer to memory of its own.

        Returns:
            Whether it did; what makes other numbers of rows, or has its own head, cannot.
        """
        if answer.submodel.has_head or self._head is None:
            return False
        return self._head.write(answer.submodel.output(answer.rows), memory, offset)

    def rows_of(self, tokens: NewTokens) -> int:
        """For how many of the last tokens there will be logits."""
        count = len(tokens)
        return count if self._admission.is_step(count) and not self._begins(tokens) else 1

    def propose(self, tokens: int) -> None:
        """Ask that the first tokens stay when the next ones come; see ``continuation``.

        Raises:
            StateError: there are not so many.
        """
        self.continuation.propose(tokens, self.history, self.cache.rows)

    def accept(self, result: Array) -> None:
        """Keep those of the last step's tokens alone that were accepted; see ``traits.trees``.

        What was proposed before is taken back.

        Args:
            result: i64, as npuw_eagle3_sampling_result has it.

        Raises:
            StateError: it does not fit the last step, or itself; nothing has changed.
        """
        if self.candidates.settle(result):
            self.continuation.end()

    def reading(self, tokens: NewTokens) -> Reading:
        """Run on new tokens, with a break after each piece of a prompt: others may run then.

        Args:
            tokens: as for ``run``.

        Yields:
            How many tokens were read since the last break. Nothing else is asked of this
            conversation until it returns or is given up; then what was read so far stays.

        Returns:
            The logits, as ``run`` gives them. It raises what ``run`` does.
        """
        return self.logits((yield from self._answering(tokens)))

    def _answering(self, tokens: NewTokens) -> Answering:
        """Check new tokens, forget what they replace, and run on them."""
        self.buffers.apply(self.adapters)
        self.gathered.begin()
        begin, history = int(tokens.positions.flat[0]), self.history
        if not history.said:
            history.begin(begin)
        elif history.is_unknown:  # rows that were set: the mask says how many tokens
            history.first_position = begin - tokens.stored
        keep = history.place_of(tokens)
        self.continuation.check(tokens, keep)
        self._admission.check_place(tokens, keep, history.said)
        begins, is_step = self._begins(tokens), self._admission.is_step(len(tokens))
        if not begins:
            self._admission.check_room(history.kept_of(keep), len(tokens))
        if begins or not is_step:
            check_read_in_order(tokens, self._plan.generate[-1].tokens)
        if begins:
            tokens = self._begin(tokens)
            return (yield from self._read_prompt(tokens))
        self.rewind(keep)
        self.continuation.end()
        tokens = history.kept(tokens)
        self._recall(tokens.mask)
        if is_step:
            return self._step(tokens)
        return (yield from self._continue_prompt(tokens))

    def _make_buffers(self) -> RequestBuffers:
        """What its models read besides tokens and their cache."""
        return AdapterBuffers(self.compiled.device, self.compiled.adapters)

    def _make_generate(self, buffers: ProgramBuffers) -> Generate:
        """Its generate models."""
        return Generate(self.compiled, self.cache, buffers, self.gathered)

    def _begins(self, tokens: NewTokens) -> bool:
        """Whether it is a new conversation, and not one that goes on."""
        first = not self.history.said or not self.history.place_of(tokens)
        return first and len(tokens) > 1

    def rewind(self, said: int) -> None:
        """Forget what follows the first tokens, as the caller counts them.

        Raises:
            TensorError: the token before was dropped, or replaced; nothing is forgotten.
            StateError: what states were made of is to be read anew, but not known.
        """
        kept = self.history.kept_of(said)
        if kept and not self.cache.rows.holds(kept - 1):
            raise TensorError(
                f"position_ids go back to token {said}, but the token before it was replaced by "
                "a newer one when the KV cache was full"
            )
        check_recall(self.states, self.history, kept)
        self.history.rewind(said)
        self.cache.truncate(kept)
        self.states.rewind(kept)
        self.candidates.forget()

    @property
    def is_full(self) -> bool:
        """Whether no variant has room for one more token, so that it fails or the older half goes.

        A cache that slides is never full.
        """
        slides = self._options.on_full == "SLIDE"
        return not slides and self.cache.rows.tokens >= self._plan.generate[-1].past

    def reset(self, tokens: int = 1) -> None:
        """Begin a new conversation, with so many tokens if that is known."""
        self.cache.reset(tokens)
        self.states.reset()
        self.history.begin(0)
        self.continuation.end()
        self.candidates.forget()

    def hold(self, tokens: int) -> None:
        """Take so many tokens for stored; their rows are set from outside."""
        self.history.hold(tokens)
        self.states.hold(tokens)
        self.candidates.forget()

    def restore(
        self,
        said: Said,
        numbers: Array,
        rows: Mapping[str, Array],
        states: Mapping[str, Array],
    ) -> None:
        """Go on from another conversation.

        Args:
            said: what was said in it.
            numbers: the tokens that are stored, ascending, i64 [n].
            rows: for each variable of K and V, [n, heads, width].
            states: for each of the others.

        Raises:
            StateError: no tokens could follow; nothing has changed.
        """
        self._admission.check_said(said)
        self.cache.replace(numbers, rows)
        self.history.restore(said)
        self.states.hold(said.count)
        for name, values in states.items():
            self.states.read(name)[...] = values
        self.continuation.end()
        self.candidates.forget()
        self._generate.select()

    def _prepare(self) -> None:
        """Do now what first runs would do: for whole chunks and all variants."""
        self._prefill.prepare()
        self._generate.prepare()

    def _begin(self, tokens: NewTokens) -> NewTokens:
        """Forget what was before; drop the middle of a prompt that is too long, if so wanted."""
        limit, count = self._admission.longest_prompt, len(tokens)
        if count > limit and self._options.on_full != "TRUNCATE":
            raise PromptTooLong(count, limit)
        self.reset(min(count, limit))
        self.history.begin(int(tokens.positions.flat[0]))
        self._prefill.counts = Counts([])
        if count <= limit:
            return tokens
        kept = self.history.drop(tokens, limit - self._admission.sinks, self._admission.sinks)
        _log.warning("a prompt of %d tokens: %d of them were dropped", count, count - limit)
        return kept

    def _continue_prompt(self, tokens: NewTokens) -> Answering:
        """Read tokens behind those that are stored."""
        rows, limit = self.cache.rows, self._admission.longest_prompt
        fits = rows.plain and rows.tokens + len(tokens) <= limit
        if not fits and self._options.on_full == "SLIDE":
            return (yield from self._slide_over(tokens))
        if not fits:
            tokens = self._make_room(tokens, limit - len(tokens))
        return (yield from self._read_prompt(tokens))

    def _slide_over(self, tokens: NewTokens) -> Answering:
        """Read tokens that prefill has no room for by generate steps, which let old ones go."""
        at_once = self._plan.generate[0].tokens
        pieces = [
            tokens.part(begin, min(begin + at_once, len(tokens)))
            for begin in range(0, len(tokens), at_once)
        ]
        for piece in pieces[:-1]:
            self._step(piece)
            yield len(piece)
        return Answer(self._step(pieces[-1]).submodel, 1)

    def _read_prompt(self, tokens: NewTokens) -> Answering:
        """Run prefill, and choose the variant to go on with."""
        anew = not self.cache.rows.tokens
        try:
            last = yield from self._prefill.read(tokens, self.history, self.adapters)
        finally:
            if anew:
                self.history.settle()
        self._generate.select()
        return Answer(last, 1)

    def _recall(self, mask: Array) -> None:
        """Read anew what layers with states forgot when they went back further than was asked."""
        tokens = recalled(self.states, self.history, self.cache, mask)
        while len(tokens):
            stage = choose_prefill(self._plan.prefill, len(tokens), self.cache.rows.tokens)
            if stage is None or self._admission.is_step(len(tokens)):
                stage = self._plan.generate[0]
            piece = tokens.part(0, stage.tokens)
            if stage.kind is Kind.GENERATE:
                self._step(piece)
            else:
                finished(self._read_prompt(piece))
            tokens = tokens.part(stage.tokens, len(tokens))
        self.gathered.begin()  # nobody asked for what is given of these again

    def _step(self, tokens: NewTokens) -> Answer:
        """Read few tokens behind those that are stored; the oldest go if there is no room."""
        self._check_wanted()
        if not self.cache.rows.tokens:
            self._prefill.counts = Counts([])
            self._generate.select()
        if not self._generate.has_room() and self._options.on_full != "SLIDE":
            tokens = self._make_room(tokens, self._plan.generate[-1].past)
        model = self._generate.run(tokens)
        self.history.extend(tokens)
        self.candidates.note(tokens)
        return Answer(model, len(tokens))

    def _make_room(self, tokens: NewTokens, room: int) -> NewTokens:
        """Drop the middle of the history and read the rest anew; new tokens follow it.

        Args:
            tokens: the new ones.
            room: how many may stand before them.
        """
        sinks, stored = self._admission.sinks, self.history.count
        recent = min(self._plan.lengths.max_prompt // 2, room) - sinks
        if self.history.unknown:
            raise StateError(
                "the KV cache is full, and what was set by set_state cannot be read anew: its "
                "tokens are not known"
            )
        kept = self.history.drop(self.history.since(0, tokens.mask[:stored]), recent, sinks)
        gone = stored - len(kept)
        _log.warning("the KV cache is full: %d of %d tokens were dropped", gone, stored)
        self.cache.reset(len(kept))
        self.states.reset()
        finished(self._read_prompt(kept))
        return tokens.moved(np.concatenate([kept.mask, tokens.mask[stored:]]), -gone)
