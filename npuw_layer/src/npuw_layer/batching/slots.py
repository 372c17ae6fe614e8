"""A static model of several conversations, and the assignment of its slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    LoadedModel,
    Memory,
    Program,
    TensorInfo,
)
from npuw_layer.llm.kv.copies import RowCopy
from npuw_layer.llm.kv.kv_strategy import KVStrategy, Refresh
from npuw_layer.llm.kv.row_layouts import present_rows
from npuw_layer.llm.request.fill_inputs import fill_inputs
from npuw_layer.llm.request.lm_head import LMHead
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.tensors.names import (
    CACHE_POSITION,
    EMBED,
    IDS,
    LAST_TOKEN,
    LOGITS,
    MASK,
    POSITIONS,
    slot_of,
    slot_variable,
)
from npuw_layer.tensors.token_inputs import token_inputs
from npuw_layer.weights.bank import WeightsBank


@dataclass(frozen=True, slots=True)
class SlotTokens:
    """A conversation's next tokens, its cache, and its parts, whose inference has begun."""

    cache: KVStrategy
    parts: ConversationParts
    new: NewTokens
    """Tokens with mask and positions in the count of kept tokens."""


class SlotModel:
    """A program that reads tokens of each of up to B conversations.

    A slot reads the cache and the parts bound to it. Conversations keep their slots from step to
    step. A new conversation takes the slot of an absent one, which costs a relocation of the
    program's arguments and no copy. An unused slot keeps reading its previous binding, or a
    neighbour's: its results are dropped, and it writes to no cache.

    Args:
        device: the device that runs the program.
        loaded: the program, of a stage with several slots.
        bank: the model's weights.
        like: a cache of the model; it defines which variables are equal.
        head: LM head that maps hidden states to logits; None if the program does.
    """

    def __init__(
        self,
        device: Device,
        loaded: LoadedModel,
        bank: WeightsBank,
        like: KVStrategy,
        head: LMHead | None,
    ) -> None:
        self._head = head
        self._program = loaded.create_program()
        elsewhere = (READ_PREFIX, WEIGHT_PREFIX)
        own = [info for info in loaded.inputs if not info.name.startswith(elsewhere)]
        bank.bind(self._program, loaded.inputs)
        outputs = {info.name: info for info in loaded.outputs}
        new_rows = [outputs.pop(ASSIGN_PREFIX + name) for names in like.stacks for name in names]
        self._arena = Arena(device, [*own, *outputs.values(), *new_rows])
        self._arena.bind(self._program)
        self._present = [present_rows(self._arena, names) for names in like.stacks]
        """New rows, slot by slot, for equal caches [variables, slots · width, heads, channels]."""
        self.slots, columns = self._arena[MASK].shape
        """Number of slots: conversations that the program serves."""
        self._width = self._arena[IDS].shape[1]
        """Tokens of a slot."""
        self.past = columns - self._width
        """Rows of each cache that the program reads."""
        self._follow = token_inputs(loaded.inputs)
        self._slot_inputs = [
            {info.name: self._arena[info.name][slot : slot + 1] for info in own}
            for slot in range(self.slots)
        ]
        self._views = [_SlotView(self._program, slot) for slot in range(self.slots)]
        self._states = [_states_of(loaded, slot) for slot in range(self.slots)]
        self._sitting: list[KVStrategy | None] = [None] * self.slots
        self._attached: list[Refresh | None] = [None] * self.slots

    def run(self, tokens: Sequence[SlotTokens]) -> list[Array]:
        """Run tokens of each of some conversations, and store their cache rows.

        Args:
            tokens: of different conversations, at most ``slots``, whose caches hold all stored
                tokens in the first ``past`` rows.

        Returns:
            For each conversation the logits of its last token, f32 [V]; the next run overwrites
            them.

        Raises:
            DeviceError: the device failed; the caches are unchanged.
        """
        for each in tokens:
            each.cache.make_room(len(each.new))
        places = self._seat(tokens)
        for refresh in self._attached:
            if refresh is not None:
                refresh()
        arena = self._arena
        for array in (arena[name] for name in arena.tensors if name in _PER_TOKEN):
            array[...] = 0
        for slot, each in zip(places, tokens, strict=True):
            inputs, rows = self._slot_inputs[slot], each.cache.rows
            fill_inputs(inputs, self._follow, each.new, rows, self.past)
            each.parts.fill(inputs, each.new, self.past)
            each.cache.prepare_past(self.past)
        self._program.run()
        logits = self._logits(places, [len(each.new) - 1 for each in tokens])
        for slot, each in zip(places, tokens, strict=True):
            self._store(slot, each)
        return [*logits]

    def free(self) -> None:
        """Free the program's memory."""
        self._arena.free()

    def _store(self, slot: int, each: SlotTokens) -> None:
        """Copy the new rows of a slot to the conversation's cache."""
        first, count = slot * self._width, len(each.new)
        new = [rows[:, first : first + count] for rows in self._present]
        each.cache.update_kvcache_for(new, RowCopy(count, each.cache.rows.place(count)))
        each.cache.settle()  # the next run overwrites these rows

    def _logits(self, slots: Sequence[int], last: Sequence[int]) -> Array:
        """Return the logits of the last token in each of some slots, f32 [n, V]."""
        if self._head is None:
            logits = self._arena[LOGITS]
            return logits[slots, last if logits.shape[1] > 1 else 0]
        states = self._arena[EMBED][slots, last]  # the LM head reads them as one prompt
        logits = self._head.logits(states[None])
        assert logits is not None  # no target is set
        return logits[0]

    def _seat(self, tokens: Sequence[SlotTokens]) -> list[int]:
        """Assign each conversation a slot, its previous one if it had one."""
        sitting = seats([*map(id, self._sitting)], [id(each.cache) for each in tokens])
        by_slot = dict(zip(sitting, tokens, strict=True))
        for slot, before in enumerate(self._sitting):
            now = by_slot.get(slot, tokens[0] if before is None else None)
            if now is not None and now.cache is not before:
                view, states = self._views[slot], self._states[slot]
                self._sitting[slot] = None  # until all variables are bound
                self._attached[slot] = now.cache.attach(view, states, self.past, None)
                now.parts.bind(view, states)
                self._sitting[slot] = now.cache
        return sitting


_PER_TOKEN = (IDS, MASK, POSITIONS, CACHE_POSITION, LAST_TOKEN)


def seats(sitting: Sequence[int], coming: Sequence[int]) -> list[int]:
    """Choose a place for each arrival, so that as few as possible change theirs.

    Args:
        sitting: previous occupant of each place.
        coming: distinct arrivals, not more than places.

    Returns:
        For each arrival its place.
    """
    before = {who: place for place, who in enumerate(sitting)}
    kept = {before[who] for who in coming if who in before}
    free = iter([place for place in range(len(sitting)) if place not in kept])
    return [before[who] if who in before else next(free) for who in coming]


def _states_of(loaded: LoadedModel, slot: int) -> list[TensorInfo]:
    """Return the variables of a slot, under a conversation's names for them."""
    found: list[TensorInfo] = []
    for info in loaded.inputs:
        variable, its_slot = slot_of(info.name)
        if its_slot == slot:
            found.append(replace(info, name=variable))
    return found


class _SlotView:
    """A program as seen by the cache in one of its slots; satisfies ``Program``."""

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
