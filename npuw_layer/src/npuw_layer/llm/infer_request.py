"""A conversation with an LLM: prompts go through prefill, single tokens through generate.

How it works. The caches hold what has been said; ``position_ids`` say where the new tokens go.
Usually they continue; if they begin earlier, what follows is forgotten (a rewind), which is exact
because masks are made from the count of stored tokens each time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from npuw_layer.errors import CapacityError, PromptTooLong, TensorError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv_cache import KVCache
from npuw_layer.llm.kv_plan import chunks
from npuw_layer.llm.names import BEAMS, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.llm.submodel import Submodel
from npuw_layer.llm.variable_state import VariableState
from npuw_layer.llm.variants import select_generate_request
from npuw_layer.ports import READ_PREFIX, Array
from npuw_layer.tensor import Tensor

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """New tokens: i64 [n] ids and positions, and a mask over all that is stored and new."""

    ids: Array
    mask: Array
    positions: Array


class InferRequest:
    """One conversation; two requests of a compiled model share nothing that changes.

    Args:
        compiled: the static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        self._compiled = compiled
        device, lengths = compiled.device, compiled.lengths
        states = [
            info for info in compiled.generate[-1].inputs if info.name.startswith(READ_PREFIX)
        ]
        self._cache = KVCache(device, states, lengths.total)
        bank = compiled.bank
        self._prefill = Submodel(device, compiled.prefill, self._cache, bank)
        self._variants = [
            Submodel(device, loaded, self._cache, bank) for loaded in compiled.generate
        ]
        self._variant = 0
        self._first_position = 0
        self._inputs: dict[str, Array] = {}
        self._logits: Array | None = None
        self._prefills = 0
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None

    @property
    def cache(self) -> KVCache:
        """What the conversation has stored; ``batching`` generates from it, too."""
        return self._cache

    def infer(self, inputs: Mapping[str, Array] | None = None, /) -> dict[str, Array]:
        """Run on new tokens.

        Args:
            inputs: input_ids i64 [1, n]; attention_mask i64 [1, stored + n]; position_ids i64
                [1, n], continuing what is stored, or earlier to forget what follows; beam_idx is
                ignored. What is missing is taken from ``set_tensor``.

        Returns:
            logits f32 [1, 1, V] of the last token.

        Raises:
            TensorError: an input is missing or does not fit.
            PromptTooLong, CapacityError: the conversation is too long.
            DeviceError: the device failed.
        """
        self.wait()
        self._infer(inputs)
        assert self._logits is not None  # _infer sets it or raises
        return {LOGITS: self._logits}

    def start_async(self, inputs: Mapping[str, Array] | None = None, /) -> None:
        """Begin one inference on another thread; ``wait`` ends it."""
        self.wait()
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "npuw-request")
        self._running = self._worker.submit(self._infer, inputs)

    def wait(self) -> None:
        """Block until the inference begun by ``start_async`` has ended; raise what it raised."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def set_tensor(self, name: str, tensor: Tensor | Array, /) -> None:
        """Set an input for the next inferences.

        Raises:
            TensorError: there is no such input.
        """
        if name not in (IDS, MASK, POSITIONS, BEAMS):
            raise TensorError(f"no input {name!r}; there are {IDS}, {MASK} and {POSITIONS}")
        self._inputs[name] = tensor.data if isinstance(tensor, Tensor) else tensor

    def get_tensor(self, name: str, /) -> Tensor:
        """Give an input that was set, or the logits of the last inference.

        Raises:
            TensorError: there is none of that name.
        """
        if name == LOGITS and self._logits is not None:
            return Tensor(self._logits)
        if name in self._inputs:
            return Tensor(self._inputs[name])
        raise TensorError(f"no tensor {name!r} yet")

    def query_state(self) -> Sequence[VariableState]:
        """The variables: each layer's K and V."""
        return [VariableState(name, self._cache) for name in self._cache.names]

    def reset_state(self) -> None:
        """Begin a new conversation."""
        self.wait()
        self._cache.reset()

    def execution_report(self) -> Mapping[str, str]:
        """How the last inferences ran, for people."""
        capacities = self._compiled.capacities
        ladder = "/".join(map(str, capacities))
        return {
            "blobs": str(self._compiled.origin),
            "prefill": f"{self._prefills} × {self._prefill.width} tokens",
            "KV variant": f"{capacities[self._variant]} of {ladder}",
        }

    def _infer(self, inputs: Mapping[str, Array] | None) -> None:
        tokens = self._take(dict(self._inputs) | dict(inputs or {}))
        if len(tokens.ids) == 1:
            logits = self._generate(tokens)
        elif self._cache.stored == 0 or self._fits_prefill(tokens):
            logits = self._read_prompt(tokens)
        else:
            logits = self._generate_each(tokens)
        self._logits = logits.copy()

    def _take(self, inputs: Mapping[str, Array]) -> _Tokens:
        """Check the inputs, and rewind if they say so."""
        if POSITIONS not in inputs and not self._prefill.takes_positions:
            inputs = {**inputs, **_continued(inputs)}
        missing = [name for name in (IDS, MASK, POSITIONS) if name not in inputs]
        if missing:
            raise TensorError(f"inputs are missing: {', '.join(missing)}")
        ids, mask, positions = (_row(name, inputs[name]) for name in (IDS, MASK, POSITIONS))
        if not len(ids) or len(positions) != len(ids):
            raise TensorError(f"{len(ids)} input_ids with {len(positions)} position_ids")
        if self._cache.stored == 0:
            self._first_position = int(positions[0])
        keep = int(positions[0]) - self._first_position
        if not 0 <= keep <= self._cache.stored:
            raise TensorError(
                f"position_ids begin at {int(positions[0])}, but {self._cache.stored} tokens are "
                "stored; they must continue there, or before"
            )
        if len(mask) != keep + len(ids):
            raise TensorError(
                f"attention_mask has {len(mask)} positions, not {keep} stored and {len(ids)} new"
            )
        self._cache.truncate(keep)
        return _Tokens(ids, mask, positions)

    def _fits_prefill(self, tokens: _Tokens) -> bool:
        """Whether prefill can go on from what is stored: its last chunk must see all before it."""
        *_, (begin, _) = chunks(len(tokens.ids), self._prefill.width)
        return self._cache.stored + begin <= self._prefill.past

    def _read_prompt(self, tokens: _Tokens) -> Array:
        """Run prefill, chunk by chunk if need be, and choose the variant to go on with."""
        count, stored = len(tokens.ids), self._cache.stored
        limit = self._compiled.lengths.max_prompt
        if stored + count > limit:
            raise PromptTooLong(stored + count, limit)
        self._prefills = 0
        for begin, end in chunks(count, self._prefill.width):
            part = slice(begin, end)
            self._prefill.run(tokens.ids[part], tokens.mask[: stored + end], tokens.positions[part])
            self._prefills += 1
        self._select()
        return self._prefill.logits

    def _select(self) -> None:
        capacities, reserve = self._compiled.capacities, self._compiled.lengths.min_response
        self._variant = select_generate_request(capacities, self._cache.stored, reserve)
        if capacities[self._variant] < self._cache.stored + reserve:
            _log.warning(
                "after %d tokens fewer than %d can be generated", self._cache.stored, reserve
            )

    def _generate(self, tokens: _Tokens) -> Array:
        """Run one token on the current variant, or the next larger one if that is full."""
        if self._cache.stored == 0:
            self._prefills = 0
            self._select()
        while self._cache.stored >= self._variants[self._variant].past:
            if self._variant + 1 == len(self._variants):
                raise CapacityError(self._cache.stored, 1, self._variants[self._variant].past)
            self._variant += 1
        variant = self._variants[self._variant]
        variant.run(tokens.ids, tokens.mask, tokens.positions)
        return variant.logits

    def _generate_each(self, tokens: _Tokens) -> Array:
        """Run tokens one after the other, where prefill cannot begin in the middle."""
        stored, room = self._cache.stored, self._variants[-1].past
        if stored + len(tokens.ids) > room:
            raise CapacityError(stored, len(tokens.ids), room)
        logits = self._prefill.logits
        for at in range(len(tokens.ids)):
            one = slice(at, at + 1)
            mask = tokens.mask[: stored + at + 1]
            logits = self._generate(_Tokens(tokens.ids[one], mask, tokens.positions[one]))
        return logits


def _continued(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Positions of the new tokens at the end of the mask, for models that do not want them."""
    if IDS not in inputs or MASK not in inputs:
        return {}
    total, new = inputs[MASK].shape[-1], inputs[IDS].shape[-1]
    return {POSITIONS: np.arange(total - new, total, dtype=np.int64)[None]}


def _row(name: str, array: Array) -> Array:
    if array.dtype != np.int64 or array.ndim != 2 or array.shape[0] != 1:
        raise TensorError(
            f"{name} is {array.dtype} {list(array.shape)}, not i64 [1, tokens]; batch is 1"
        )
    return array[0]
