"""Reader of a conversation's tokens: prompts by prefill, few tokens by generate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import StateError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.chunks import cheapest
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.generate import Generate
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.lm_head import LMHead, LogitsTarget
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.llm.request.prefill import Prefill
from npuw_layer.tensors.token_outputs import Gathered

_log = logging.getLogger(__name__)

Logits = Array | None
"""f32 [1, rows, V], overwritten by the next inference; None if the device wrote to a target."""

Reading = Generator[int, None, Logits]
"""Reading in chunks: yields numbers of tokens read, and returns the logits."""


class Reader:
    """Static models of one conversation.

    Args:
        compiled: the static models, which stay unchanged.
        cache: the conversation's K and V.
        history: the conversation's tokens.
        parts: the conversation's parts of traits.
        check_wanted: called before each run of a program; raises to end the inference there.
        generate: class of the generate models.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        cache: KVStrategy,
        history: History,
        parts: ConversationParts,
        check_wanted: Callable[[], None],
        generate: type[Generate] = Generate,
    ) -> None:
        self._options, self._plan = compiled.options, compiled.plan
        self._cache, self._history, self._parts = cache, history, parts
        self._check_wanted = check_wanted
        self.gathered = Gathered(compiled.token_outputs)
        """Rows of outputs other than the logits, for the tokens of the last inference."""
        self.head = LMHead.of(compiled, parts)
        self.prefill = Prefill(compiled, cache, parts, self.gathered, check_wanted)
        self.generate = generate(compiled, cache, parts, self.gathered, self.head)
        self.ran: list[Stage] = []
        """Static models that the last inference ran, in order, besides those of prefill."""
        self.prefill.prepare()
        self.generate.prepare()

    def begin(self) -> None:
        """Begin an inference: nothing has run, and there is no output."""
        self.gathered.begin()
        self.ran = []

    def copy_from(self, other: Reader) -> None:
        """Go on where the reader of a copied conversation is."""
        self.prefill.copy_from(other.prefill)
        self.generate.copy_from(other.generate)

    def start(self, tokens: int) -> None:
        """Choose a variant for a conversation that begins with a step of so many tokens."""
        self.prefill.forget()
        self.generate.select(tokens)

    def step(self, tokens: NewTokens, target: LogitsTarget | None = None) -> Logits:
        """Read few tokens after the stored ones, and compute the logits of all new tokens."""
        self._check_wanted()
        logits = self.generate.run(tokens, target)
        assert self.generate.last is not None  # it has just run
        self.ran.append(self.generate.last.stage)
        if self.head is not None:
            self.ran.append(self.head.last)
        self._history.extend(tokens)
        self._parts.note(tokens)
        return logits

    def prompt(self, tokens: NewTokens, rows: int, target: LogitsTarget | None) -> Reading:
        """Read a prompt after the stored tokens, and compute the logits of its last tokens."""
        anew = not self._cache.rows.tokens
        try:
            last = yield from self.prefill.read(tokens, self._history)
        finally:
            if anew:
                self._history.settle()
        self.generate.select()
        if self.head is None:
            return last.output(rows)
        if not rows:
            return None
        logits = self.head.logits(last.output(rows), target)
        self.ran.append(self.head.last)
        return logits

    def slide(self, tokens: NewTokens, room: int, target: LogitsTarget | None) -> Reading:
        """Read the first tokens by prefill, and the others by generate steps.

        Args:
            tokens: more tokens than prefill has room for.
            room: number of tokens that prefill reads; steps of the others replace old tokens.
            target: device memory for the LM head's logits, if the head makes as many rows.
        """
        at_once, begin = self._plan.generate[0].tokens, 0
        if room:
            for count in self.prompt(tokens.part(0, room), 0, None):
                yield count
                begin += count
            yield room - begin
            begin = room
        while begin + at_once < len(tokens):
            self.step(tokens.part(begin, begin + at_once))
            begin += at_once
            yield at_once
        last = tokens.part(begin, len(tokens))
        logits = self.step(last, target if len(last) == 1 else None)
        return None if logits is None else logits[:, -1:]

    def make_room(self, tokens: NewTokens, room: int) -> NewTokens:
        """Drop the middle of the history, and read the rest again.

        Args:
            tokens: new tokens, which follow the history.
            room: maximum number of tokens before them.

        Returns:
            The new tokens at their moved positions.

        Raises:
            StateError: input values of stored tokens are unknown.
        """
        history, sinks = self._history, self._options.sink_tokens
        stored, recent = history.count, min(self._plan.lengths.max_prompt // 2, room) - sinks
        if history.unknown:
            raise StateError(
                "the KV cache is full, but tokens set by set_state are unknown and cannot be read "
                "again; call reset_state()"
            )
        kept = history.drop(history.since(0, tokens.mask[:stored]), recent, sinks)
        gone = stored - len(kept)
        _log.warning("the KV cache is full: %d of %d tokens were dropped", gone, stored)
        self._cache.reset(len(kept))
        self._parts.forget()
        finished(self.prompt(kept, 0, None))
        return tokens.moved(np.concatenate([kept.mask, tokens.mask[stored:]]), -gone)

    def reread(self, mask: Array) -> None:
        """Read tokens again that a part has forgotten by rewinding further than requested.

        Args:
            mask: mask over all kept and new tokens.
        """
        kept, begin = self._history.count, self._parts.known(self._history.count)
        if begin >= kept:
            return
        tokens = self._history.since(begin, mask[:kept])
        self._history.forget(begin)
        self._cache.truncate(begin)
        at_once, room = self._plan.generate[0].tokens, self._plan.lengths.max_prompt - begin
        read = min(len(tokens), max(room, 0))
        if len(tokens) > at_once and cheapest(self._plan.prefill, read, begin):
            finished(self.prompt(tokens.part(0, read), 0, None))
            tokens = tokens.part(read, len(tokens))
        while len(tokens):
            if not self._cache.rows.tokens:
                self.start(min(at_once, len(tokens)))
            self.step(tokens.part(0, at_once))
            tokens = tokens.part(at_once, len(tokens))
        self.gathered.begin()  # the caller already has the outputs of these tokens


def finished(reading: Reading) -> Logits:
    """Run a reading to its end, and return the logits."""
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value
