"""Readers of single texts: outputs for each token of a text, or for the whole text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import ASSIGN_PREFIX, Array, Program
from npuw_layer.errors import PromptTooLong, TensorError
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.plan.stages import Stage, rope_rows
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.lm_head import LMHead
from npuw_layer.llm.request.make_cache import make_cache
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.llm.request.prefill import Chunks, Counts, Prefill
from npuw_layer.llm.request.submodel import Submodel
from npuw_layer.tensors.names import IDS, LAST_HIDDEN_STATE, LOGITS, MASK, POSITIONS
from npuw_layer.tensors.token_outputs import Gathered
from npuw_layer.traits.images.trait import TOKEN_TYPES

PADDING = -1
"""Id of padding behind a text, for static models that read texts whole."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text: i64 [n] each, without masked-out tokens at the end."""

    ids: Array
    mask: Array
    positions: Array
    types: Array


def reads_in_chunks(compiled: CompiledLLM) -> bool:
    """Return whether a compiled model caches K and V."""
    stage = compiled.plan.prefill[0]
    return any(info.name.startswith(ASSIGN_PREFIX) for info in compiled.models[stage].outputs)


class ChunkReader:
    """Reader with a KV cache, chunk by chunk.

    Masked-out tokens are skipped, because no token attends to them; their outputs are 0.

    Args:
        compiled: the static models, which remain unchanged.
        check_wanted: called before each run of a program; raises to cancel the inference.

    Raises:
        DeviceError: the device is out of memory.
    """

    def __init__(self, compiled: CompiledLLM, check_wanted: Callable[[], None]) -> None:
        self._compiled = compiled
        self._cache = make_cache(compiled)
        self._history = History((), rereads=False)
        self._parts = ConversationParts.of(compiled, self._cache, self._history)
        self._prefill = Prefill(compiled, self._cache, self._parts, Gathered(()), check_wanted)
        self._head = LMHead.of(compiled, self._parts)
        self._prefill.prepare()

    @property
    def runs(self) -> list[str]:
        """Names of the static models that read the last text, in order."""
        return self._prefill.counts.prefills

    def read(self, text: Text) -> Mapping[str, Array]:
        """Read a text.

        Returns:
            The outputs by name; the next call may overwrite them. Outputs per token are [1, n, …],
            in the order of the text's tokens. A language model returns the logits of its last
            token.

        Raises:
            PromptTooLong: the text has more tokens than NPUW_LLM_MAX_PROMPT_LEN.
            InferenceCancelled: the inference was cancelled.
            DeviceError: the device failed.
        """
        used = np.flatnonzero(text.mask)
        count, limit = len(used), self._compiled.plan.lengths.max_prompt
        if count > limit:
            raise PromptTooLong(count, limit)
        self._check_positions(text.positions[used])
        self._begin(count)
        rows = {IDS: text.ids[used], POSITIONS: text.positions[used]}
        new = NewTokens(rows, np.ones(count, np.int64))
        embeds = self._compiled.options.group(TextOptions).text_embed
        states: list[Array] = []
        last: Submodel | None = None
        for piece in _sizes(self._prefill.read(new, self._history), count):
            last = self._prefill.last
            assert last is not None  # the iterator has run a submodel
            if embeds:
                states.append(last.output(piece).copy())
        if last is not None and not embeds:
            return {LOGITS: self._logits(last)}
        found = np.concatenate(states, 1)
        hidden = np.zeros((1, len(text.ids), found.shape[2]), found.dtype)
        hidden[:, used] = found
        return {LAST_HIDDEN_STATE: hidden}

    def _check_positions(self, positions: Array) -> None:
        """Check that positions are in the RoPE tables, and contiguous for prefix caching.

        Raises:
            TensorError: the positions do not fit.
        """
        options, stage = self._compiled.options, self._compiled.plan.prefill[0]
        rows = rope_rows(stage, options)
        if positions.min() < 0 or (options.caches_rope and positions.max() >= rows):
            raise TensorError(
                f"position_ids are from {positions.min()} to {positions.max()}, not from 0 to "
                f"{rows - 1}; raise NPUW_LLM_MAX_PROMPT_LEN, or for larger positions set "
                "NPUW_LLM_CACHE_ROPE = NO"
            )
        if self._compiled.prefixes is not None and (np.diff(positions) != 1).any():
            raise TensorError(
                "NPUW_LLM_ENABLE_PREFIX_CACHING: position_ids have gaps, but cached rows belong to "
                "contiguous tokens; leave the option out, or mask out no tokens between others"
            )

    def _begin(self, count: int) -> None:
        self._parts.begin()
        self._cache.reset(count)
        self._history.begin(0)
        self._prefill.counts = Counts([])

    def _logits(self, last: Submodel) -> Array:
        found = last.output(1)
        logits = found if self._head is None else self._head.logits(found)
        assert logits is not None  # no output tensor was passed in
        return logits


class UnchunkedReader:
    """Reader without a KV cache, by the smallest static model that holds the text.

    Arguments and errors are those of ``ChunkReader``.
    """

    def __init__(self, compiled: CompiledLLM, check_wanted: Callable[[], None]) -> None:
        self._compiled = compiled
        self._check_wanted = check_wanted
        self._models: dict[Stage, _WholeModel] = {}
        self.runs: list[str] = []
        """Names of the static models that read the last text."""
        self._model(compiled.plan.prefill[-1]).prepare()

    def read(self, text: Text) -> Mapping[str, Array]:
        """Read a text; see ``ChunkReader``. Masked-out tokens between others are computed, too."""
        stages, count = self._compiled.plan.prefill, len(text.ids)
        stage = next((stage for stage in stages if stage.tokens >= count), None)
        if stage is None:
            raise PromptTooLong(count, self._compiled.plan.lengths.max_prompt)
        self._check_wanted()
        self.runs = [stage.name]
        return self._model(stage).run(text)

    def _model(self, stage: Stage) -> _WholeModel:
        if stage not in self._models:
            self._models[stage] = _WholeModel(self._compiled, stage)
        return self._models[stage]


class _WholeModel:
    """One static model with its own tensors."""

    def __init__(self, compiled: CompiledLLM, stage: Stage) -> None:
        loaded = compiled.models[stage]
        self._tokens = stage.tokens
        self._outputs = [info.name for info in loaded.outputs]
        inputs = [info for info in loaded.inputs if not info.name.startswith(WEIGHT_PREFIX)]
        self._arena = Arena(compiled.device, [*inputs, *loaded.outputs])
        self._program: Program = loaded.create_program()
        self._arena.bind(self._program)
        compiled.bank.bind(self._program, loaded.inputs)

    def prepare(self) -> None:
        """Do the one-time work of the first run now."""
        self._program.prepare()

    def run(self, text: Text) -> dict[str, Array]:
        """Read a text that fits the static model."""
        count = len(text.ids)
        for name, values, padding in (
            (IDS, text.ids, PADDING),
            (MASK, text.mask, 0),
            (TOKEN_TYPES, text.types, 0),
            (POSITIONS, text.positions, 0),
        ):
            if name in self._arena.tensors:
                self._arena[name][0, :count] = values
                self._arena[name][0, count:] = padding
        self._program.run()
        return {name: self._cut(self._arena[name], count) for name in self._outputs}

    def _cut(self, values: Array, count: int) -> Array:
        """Return an output without the rows of padding."""
        of_tokens = values.ndim > 2 and values.shape[1] == self._tokens
        return values[:, :count] if of_tokens else values


def _sizes(pieces: Chunks, count: int) -> Iterator[int]:
    """Run all chunks; yield the number of tokens of each chunk after it was read."""
    done = 0
    for size in pieces:
        yield size
        done += size
    yield count - done
