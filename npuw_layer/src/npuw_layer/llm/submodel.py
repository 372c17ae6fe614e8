"""One static model of an LLM as one conversation uses it."""

from __future__ import annotations

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.llm.arena import Arena
from npuw_layer.llm.kv_cache import KVCache
from npuw_layer.llm.kv_plan import mask_columns, store_plan
from npuw_layer.llm.names import CACHE_POSITION, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.ports import ASSIGN_PREFIX, READ_PREFIX, Array, Device, LoadedModel
from npuw_layer.weights_bank import WeightsBank


class Submodel:
    """A program with tensors of its own, reading its past from a conversation's cache.

    Args:
        device: where it runs.
        loaded: the program.
        cache: the conversation's K and V.
        bank: the model's weights.
    """

    def __init__(
        self, device: Device, loaded: LoadedModel, cache: KVCache, bank: WeightsBank
    ) -> None:
        self._program = loaded.create_program()
        self._cache = cache
        elsewhere = (READ_PREFIX, WEIGHT_PREFIX)
        own = [info for info in loaded.inputs if not info.name.startswith(elsewhere)]
        bank.bind(self._program, loaded.inputs)
        presents = [[ASSIGN_PREFIX + name for name in names] for names in cache.stacks]
        outputs = {info.name: info for info in loaded.outputs}
        new_rows = [outputs.pop(name) for names in presents for name in names]
        self._arena = Arena(device, self._program, [*own, *outputs.values(), *new_rows])
        self._present = [self._arena.stack(names) for names in presents]
        """The new rows of caches that are alike, [variables, width, heads, channels]."""
        cache.bind(self._program, loaded.inputs)
        self._program.prepare()
        self.width = self._arena[IDS].shape[1]
        """Tokens that it takes at a time."""
        self.past = self._arena[MASK].shape[1] - self.width
        """Rows of the cache that it reads."""

    @property
    def takes_positions(self) -> bool:
        """Whether it wants position_ids."""
        return POSITIONS in self._arena.tensors

    @property
    def capacity(self) -> int:
        """Positions that its attention spans."""
        return self.past + self.width

    @property
    def logits(self) -> Array:
        """f32 [1, 1, V]; the next run overwrites them."""
        return self._arena[LOGITS]

    def run(self, ids: Array, mask: Array, positions: Array) -> None:
        """Run on new tokens after those in the cache, and store their rows.

        Args:
            ids: i64 [n], n at most ``width``.
            mask: i64 [stored + n], 0 for positions that nobody attends to.
            positions: i64 [n].
        """
        used, stored = len(ids), self._cache.stored
        arena = self._arena
        for name, values in ((IDS, ids), (POSITIONS, positions)):
            if name in arena.tensors:
                arena[name][...] = 0
                arena[name][0, self.width - used :] = values
        if CACHE_POSITION in arena.tensors:
            arena[CACHE_POSITION][...] = 0
            arena[CACHE_POSITION][0, self.width - used :] = range(stored, stored + used)
        old, new = mask_columns(self.past, self.width, stored, used)
        arena[MASK][...] = 0
        arena[MASK][0, old] = mask[:stored]
        arena[MASK][0, new] = mask[stored:]
        self._cache.prepare_past(self.past)
        self._program.run()
        self._cache.update_kvcache_for(self._present, store_plan(self.width, used, stored))

    def free(self) -> None:
        """Give the memory back."""
        self._arena.free()
