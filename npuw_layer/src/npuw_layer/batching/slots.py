"""A static model that generates for several conversations, and who sits in which of its slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.llm.arena import Arena
from npuw_layer.llm.kv_cache import KVCache
from npuw_layer.llm.kv_plan import RowCopy, mask_columns
from npuw_layer.llm.names import (
    CACHE_POSITION,
    IDS,
    LOGITS,
    MASK,
    POSITIONS,
    slot_of,
    slot_variable,
)
from npuw_layer.ports import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    LoadedModel,
    Memory,
    Program,
    TensorInfo,
)
from npuw_layer.weights_bank import WeightsBank


@dataclass(frozen=True, slots=True)
class SlotToken:
    """The next token of a conversation: what it says, where it stands, and what came before."""

    cache: KVCache
    token: int
    position: int


class SlotModel:
    """A program that takes a token of each of up to B conversations.

    A slot reads whatever cache it is bound to. Conversations keep their slots from step to step;
    one that comes in takes the slot of one that is not there any more, which costs a relocation of
    the program's arguments and no copy. A slot that nobody uses goes on reading a cache that it
    read before, or a neighbour's: what it computes is dropped, and it writes to no cache.

    Args:
        device: where it runs.
        loaded: the program, made by ``split_slots``.
        bank: the model's weights.
        like: a cache of the model: says which variables are alike.
    """

    def __init__(
        self, device: Device, loaded: LoadedModel, bank: WeightsBank, like: KVCache
    ) -> None:
        self._program = loaded.create_program()
        elsewhere = (READ_PREFIX, WEIGHT_PREFIX)
        own = [info for info in loaded.inputs if not info.name.startswith(elsewhere)]
        bank.bind(self._program, loaded.inputs)
        presents = [[ASSIGN_PREFIX + name for name in names] for names in like.stacks]
        outputs = {info.name: info for info in loaded.outputs}
        new_rows = [outputs.pop(name) for names in presents for name in names]
        self._arena = Arena(device, self._program, [*own, *outputs.values(), *new_rows])
        self._present = [self._arena.stack(names) for names in presents]
        """A new row of each slot, for caches that are alike [variables, slots, heads, channels]."""
        self.slots, columns = self._arena[MASK].shape
        """Conversations that it takes."""
        self.past = columns - 1
        """Rows of each cache that it reads."""
        self._views = [_SlotView(self._program, slot) for slot in range(self.slots)]
        self._states = [_states_of(loaded, slot) for slot in range(self.slots)]
        self._sitting: list[KVCache | None] = [None] * self.slots

    def run(self, tokens: Sequence[SlotToken]) -> list[Array]:
        """Run on a token of each of some conversations, and store their rows.

        Args:
            tokens: of different conversations, at most ``slots``, with fewer than ``past`` rows
                stored, or as many.

        Returns:
            For each the logits, f32 [V]; the next run overwrites them.

        Raises:
            DeviceError: the device failed; the caches are as they were.
        """
        places = self._seat([each.cache for each in tokens])
        arena = self._arena
        for array in (arena[name] for name in arena.tensors if name in _PER_TOKEN):
            array[...] = 0
        for slot, each in zip(places, tokens, strict=True):
            self._fill(slot, each)
            each.cache.prepare_past(self.past)
        self._program.run()
        for slot, each in zip(places, tokens, strict=True):
            each.cache.update_kvcache_for(self._present, RowCopy(slot, each.cache.stored, 1))
            each.cache.prepare_past(0)  # copied now: the next run overwrites these rows
        return [arena[LOGITS][slot, 0] for slot in places]

    def free(self) -> None:
        """Give the memory back."""
        self._arena.free()

    def _fill(self, slot: int, each: SlotToken) -> None:
        arena, stored = self._arena, each.cache.stored
        for name, value in (
            (IDS, each.token),
            (POSITIONS, each.position),
            (CACHE_POSITION, stored),
        ):
            if name in arena.tensors:
                arena[name][slot] = value
        old, new = mask_columns(self.past, 1, stored, 1)
        arena[MASK][slot, old] = arena[MASK][slot, new] = 1

    def _seat(self, caches: Sequence[KVCache]) -> list[int]:
        """Give each cache its slot, where it sat before if it did."""
        sitting = seats([id(cache) for cache in self._sitting], [id(cache) for cache in caches])
        by_slot = dict(zip(sitting, caches, strict=True))
        for slot, before in enumerate(self._sitting):
            now = by_slot.get(slot, before or caches[0])
            if now is not before:
                now.bind(self._views[slot], self._states[slot])
                self._sitting[slot] = now
        return sitting


_PER_TOKEN = (IDS, MASK, POSITIONS, CACHE_POSITION)


def seats(sitting: Sequence[int], coming: Sequence[int]) -> list[int]:
    """Choose a place for each that comes, so that as few as possible change theirs.

    Args:
        sitting: who sat in each place.
        coming: different ones, not more than places.

    Returns:
        For each that comes its place.
    """
    before = {who: place for place, who in enumerate(sitting)}
    kept = {before[who] for who in coming if who in before}
    free = iter([place for place in range(len(sitting)) if place not in kept])
    return [before[who] if who in before else next(free) for who in coming]


def _states_of(loaded: LoadedModel, slot: int) -> list[TensorInfo]:
    """The variables of a slot, by the names that a conversation has for them."""
    found: list[TensorInfo] = []
    for info in loaded.inputs:
        variable, its_slot = slot_of(info.name)
        if its_slot == slot:
            found.append(replace(info, name=variable))
    return found


class _SlotView:
    """A program as a cache sees it that sits in one of its slots; satisfies ``ports.Program``."""

    def __init__(self, program: Program, slot: int) -> None:
        self._program = program
        self._slot = slot

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind a variable of the slot."""
        self._program.bind(slot_variable(name, self._slot), memory, offset)

    def prepare(self) -> None:
        """Prepare the whole program."""
        self._program.prepare()

    def run(self) -> None:
        """Run the whole program."""
        self._program.run()
