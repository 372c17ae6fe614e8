"""A text that a Whisper decoder writes: a prompt over new audio, then token by token.

The rules are NPUW's: several tokens, or the first token of all, are a prompt and start a new text;
a single later token continues the text. All rows of the cache are used. When the last row is taken,
the logits select the token that ends the text.

Source: NPUW's Whisper infer request; docs/reference/npuw.md#whisper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import CapacityError, TensorError
from npuw_layer.kinds.whisper.options import WhisperOptions
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.admission import Admission
from npuw_layer.llm.request.conversation import Conversation
from npuw_layer.llm.request.generate import Generate
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.lm_head import LogitsTarget
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.reader import Logits, Reader
from npuw_layer.tensors.names import IDS, POSITIONS
from npuw_layer.traits.cross_attention.buffers import CrossBuffers

_log = logging.getLogger(__name__)


class WhisperConversation(Conversation):
    """The state of one request, and the static models that it runs on.

    Args:
        compiled: the static models, which remain unchanged.
        check_wanted: called before each run of a program; raises to cancel the inference.
    """

    def __init__(self, compiled: CompiledLLM, check_wanted: Callable[[], None]) -> None:
        super().__init__(compiled, check_wanted)
        (self.audio,) = (part for part in self.parts.each if isinstance(part, CrossBuffers))
        self._admission = _Admission(compiled.options, compiled.plan, compiled.token_inputs)
        self._eos = compiled.options.group(WhisperOptions).whisper_eos_token
        self._prompt: int | None = None
        """Number of tokens of the last prompt."""

    def begins_with(self, count: int) -> bool:
        """Return whether a number of tokens is a prompt over new audio."""
        return count > 1 or not self.history.caller_count

    def next_tokens(self, ids: Array) -> NewTokens:
        """Assign positions to tokens: from 0 for a prompt, or behind the stored tokens."""
        count = len(ids)
        stored = 0 if self.begins_with(count) else self.history.caller_count
        positions = np.arange(stored, stored + count)
        return NewTokens({IDS: ids, POSITIONS: positions}, np.ones(stored + count, np.int64))

    def infer(self, tokens: NewTokens, target: LogitsTarget | None = None) -> Logits:
        """Run on new tokens; return the logits of all of them."""
        del target  # each model has its own head, so no head writes elsewhere
        begins = self.begins_with(len(tokens))
        found = super().infer(tokens)
        assert found is not None  # no output tensor was passed in
        self._prompt = len(tokens) if begins else self._prompt
        if self.is_full:
            _log.warning("all %d positions are taken: the text ends", self._total)
            found[..., -1, self._eos] = np.inf
        return found

    def rows_of(self, tokens: NewTokens) -> int:
        """Return the number of last tokens that get logits: all."""
        return len(tokens)

    def scores(self, name: str) -> Array:
        """Return a layer's attention scores of the last prompt, f32 [1, heads, tokens, frames].

        Raises:
            TensorError: no such output exists, or there was no prompt.
        """
        last = self.reader.prefill.last
        if self._prompt is None or last is None:
            raise TensorError(f"{name!r} has no value before the first prompt")
        found = last.tensor(name)
        if found is None:
            raise TensorError(
                f"no output {name!r}; NPUW_WHISPER_DECOMPOSE_SDPA = YES adds one per layer"
            )
        return found[:, :, : self._prompt]

    @property
    def is_full(self) -> bool:
        """True if no position is left for another token."""
        return self.cache.rows.tokens >= self._total

    @property
    def _total(self) -> int:
        return self._plan.lengths.total

    def _make_reader(self, check_wanted: Callable[[], None]) -> Reader:
        own = self.compiled, self.cache, self.history, self.parts
        return Reader(*own, check_wanted, _Generate)


class _Generate(Generate):
    """Generate step that switches to a larger variant when one is full, without copying rows."""

    def select(self, coming: int = 0) -> None:
        """Select the smallest variant."""
        self.variant = 0

    def move_on(self) -> None:
        """Move to a variant that reads all stored rows; the last row is the new token's."""
        while self._cache.rows.tokens > self._plan.generate[self.variant].past:
            self.variant += 1


class _Admission(Admission):
    """Admission of a token while a position is left for it."""

    def _begins(self, tokens: NewTokens, history: History) -> bool:
        return len(tokens) > 1 or not history.caller_count

    def check_room(self, stored: int, count: int) -> None:
        """Check that a position is left.

        Raises:
            CapacityError: no position is left.
        """
        total = self._plan.lengths.total
        if stored + count > total:
            advice = "the text ends; read the next part of the audio with a new prompt"
            raise CapacityError(stored, count, total, advice)
