"""One static model of an LLM in one conversation."""

from __future__ import annotations

from collections.abc import Callable

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Program,
    RunsTogether,
    TensorInfo,
)
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.copies import RowCopy
from npuw_layer.llm.kv.kv_strategy import KVStrategy, Refresh
from npuw_layer.llm.kv.row_layouts import present_rows
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.fill_inputs import fill_inputs
from npuw_layer.llm.request.lm_head import LMHead
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.tensors.names import EMBED, LOGITS
from npuw_layer.tensors.token_inputs import token_inputs
from npuw_layer.tensors.token_outputs import Gathered, token_outputs
from npuw_layer.tensors.traits import traits


class Submodel:
    """Programs of one static model, which read their past from a conversation's cache.

    New rows enter the cache in one of two ways. Copied: the program writes them to a buffer, and
    they are copied into the cache later. Directly: outputs are bound to rows of the cache. Each
    first row has its own program, as rebinding costs a good part of a run.

    Args:
        compiled: all static models.
        stage: stage of this model.
        cache: the conversation's K and V.
        parts: the conversation's parts of traits.
        head: LM head; if it takes at least as many rows, this model writes hidden states to its
            input.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        stage: Stage,
        cache: KVStrategy,
        parts: ConversationParts,
        head: LMHead | None = None,
    ) -> None:
        self.stage = stage
        self._device = device = compiled.device
        self._loaded = loaded = compiled.models[stage]
        self._cache = cache
        self._parts = parts
        self._bank = compiled.bank
        bound = (name for trait in traits() for name in trait.bound_inputs)
        elsewhere = (READ_PREFIX, ASSIGN_PREFIX, WEIGHT_PREFIX, *bound)
        own = (*loaded.inputs, *loaded.outputs)
        own = [info for info in own if not info.name.startswith(elsewhere)]
        embed = [info for info in own if info.name == EMBED]
        feeds = head is not None and len(embed) == 1 and _begins(embed[0], head.states.info)
        self._head = head if feeds else None
        self._arena = Arena(device, [one for one in own if self._head is None or one not in embed])
        self._token_inputs = token_inputs(loaded.inputs)
        self._inputs = {
            info.name: self._arena[info.name]
            for info in loaded.inputs
            if info.name in self._arena.tensors
        }
        self._token_outputs = token_outputs(loaded.outputs)
        self._presents: Arena | None = None
        self._present: list[Array] = []
        """New rows of each group of caches of equal layout, [variables, width, heads, channels]."""
        self._programs: dict[int | None, tuple[Program, Refresh]] = {}
        """Programs by the first row that they write in the cache; None for the one with a
        buffer."""
        self._runs: dict[tuple[Program, Program | None], Callable[[], None]] = {}
        """Callables by program and the head's program that follows it."""
        self._used = 0

    @property
    def feeds_head(self) -> bool:
        """True if this model writes hidden states to the LM head's input."""
        return self._head is not None

    def gather(self, gathered: Gathered) -> None:
        """Add the last run's rows of outputs that follow tokens."""
        for port in self._token_outputs:
            gathered.add(port.name, self._arena[port.name][0, : self._used])

    def prepare(self, direct_row: int | None) -> None:
        """Do the work of the first run in advance; see ``run``."""
        self._program(direct_row).prepare()

    def run(self, new: NewTokens, direct: bool, head: Program | None = None) -> None:
        """Run on new tokens after the cached ones, and store their rows.

        Args:
            new: at most as many tokens as the stage takes.
            direct: whether the program writes new rows directly into the cache.
            head: program of the LM head to run after this model, on its hidden states.
        """
        used, cache = len(new), self._cache
        cache.make_room(used)
        run = self._running(self._program(cache.rows.tokens if direct else None), head)
        fill_inputs(self._inputs, self._token_inputs, new, cache.rows, self.stage.past)
        self._parts.fill(self._inputs, new, self.stage.past)
        cache.prepare_past(self.stage.past)
        if direct:
            cache.rows.expect(self.stage.tokens)  # a failing run may have written some rows
            run()
            cache.rows.append(used)
        else:
            run()
            cache.update_kvcache_for(self._present, RowCopy(used, cache.rows.place(used)))
        self._parts.advance(used)
        self._used = used

    def output(self, count: int) -> Array:
        """Return the output for the last tokens of the last run; the next run overwrites it.

        Returns:
            f32 [1, count, V], or hidden states [1, count, channels] if the head is cut off.
        """
        if LOGITS not in self._arena.tensors:
            return self._arena[EMBED][:, self._used - count : self._used]
        logits = self._arena[LOGITS]
        return logits[:, self._used - count : self._used] if logits.shape[1] > 1 else logits

    def tensor(self, name: str) -> Array | None:
        """Return an input or output of the last run; None if the model has no such tensor."""
        found = self._arena.tensors.get(name)
        return None if found is None else found.data

    def _program(self, direct_row: int | None) -> Program:
        """Return the program that writes to the cache from a row on, or to a buffer."""
        if direct_row not in self._programs:
            program = self._loaded.create_program()
            self._arena.bind(program)
            self._bank.bind(program, self._loaded.inputs)
            self._parts.bind(program, (*self._loaded.inputs, *self._loaded.outputs))
            if self._head is not None:
                program.bind(EMBED, self._head.states.memory, self._head.states.offset)
            refresh = self._cache.attach(program, self._loaded.inputs, self.stage.past, direct_row)
            if direct_row is None:
                self._take_presents(program)
            self._programs[direct_row] = program, refresh
        program, refresh = self._programs[direct_row]
        refresh()
        return program

    def _running(self, program: Program, head: Program | None) -> Callable[[], None]:
        """Return a callable that runs a program, and then the head's."""
        if head is None:
            return program.run
        if (program, head) not in self._runs:
            self._runs[program, head] = _in_order(program, head)
        return self._runs[program, head]

    def _take_presents(self, program: Program) -> None:
        """Allocate and bind a buffer for a program's new rows."""
        outputs = {info.name: info for info in self._loaded.outputs}
        rows = [outputs[ASSIGN_PREFIX + name] for names in self._cache.stacks for name in names]
        self._presents = Arena(self._device, rows)
        self._presents.bind(program)
        self._present = [present_rows(self._presents, names) for names in self._cache.stacks]


def _begins(rows: TensorInfo, more: TensorInfo) -> bool:
    """Return whether rows [1, n, channels] may be the first ones of a tensor with more."""
    return rows.element == more.element and rows.shape[1] <= more.shape[1]


def _in_order(first: Program, second: Program) -> Callable[[], None]:
    """Return a callable that runs two programs in order to their end."""
    together = first.followed_by(second) if isinstance(first, RunsTogether) else None

    def one_by_one() -> None:
        first.run()
        second.run()

    return together or one_by_one
