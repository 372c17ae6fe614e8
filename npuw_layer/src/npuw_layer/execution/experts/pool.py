"""Programs that are bound to experts' weights, kept as long as they are used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compiler_layer.partition.compiled import LITERAL_PREFIX
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import LoadedModel, Memory, Program, TensorInfo
from npuw_layer.execution.experts.container import ExpertEntry

WEIGHTS = (WEIGHT_PREFIX, LITERAL_PREFIX)
"""What the names of inputs that are weights begin with."""


@dataclass(frozen=True, slots=True)
class WeightPlace:
    """Where a weight lies."""

    memory: Memory
    offset: int


@dataclass(frozen=True, slots=True)
class _Bound:
    """A program, and the number of what it was made of."""

    number: int
    program: Program


class ProgramPool:
    """Programs for the experts that were run last.

    The one that was not used for longest is bound to another expert's weights: that takes less
    than to make one, and more than to run one that is bound already.

    Args:
        limit: programs that are kept (NPUW_MOE_POOL_SIZE); one at least.
        loaded: what programs are made of.
        arena: the rows that all of them work on.
    """

    def __init__(self, limit: int, loaded: Sequence[LoadedModel], arena: Arena) -> None:
        self._limit = max(1, limit)
        self._loaded = loaded
        self._arena = arena
        self._bound: OrderedDict[int, _Bound] = OrderedDict()

    def take(self, expert: ExpertEntry, places: Mapping[str, WeightPlace]) -> Program:
        """Give the program of an expert.

        Args:
            expert: which.
            places: where all weights are.
        """
        held = self._bound.get(expert.number)
        if held is None:
            program = self._free(expert.program)
            for own, name in weight_names(self._loaded[expert.program], expert):
                program.bind(own.name, places[name].memory, places[name].offset)
            held = self._bound[expert.number] = _Bound(expert.program, program)
        self._bound.move_to_end(expert.number)
        return held.program

    def clear(self) -> None:
        """Forget all programs: a weight lies elsewhere."""
        self._bound.clear()

    def _free(self, number: int) -> Program:
        """A program that is not used any more, or a new one."""
        if len(self._bound) >= self._limit:
            _, oldest = self._bound.popitem(last=False)
            if oldest.number == number:
                return oldest.program
        program = self._loaded[number].create_program()
        self._arena.bind(program)
        return program


def weight_names(loaded: LoadedModel, expert: ExpertEntry) -> Iterator[tuple[TensorInfo, str]]:
    """A program's inputs that are weights, and what they are called in the mixture."""
    for info in loaded.inputs:
        if info.name.startswith(WEIGHTS):
            yield info, expert.names.get(info.name, info.name)
