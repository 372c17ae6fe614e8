"""Programs bound to experts' weights, kept while they are in use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

from compiler_layer.partition.compiled import LITERAL_PREFIX
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.host_tensors import Place
from npuw_layer.backends.protocols import LoadedModel, Program, TensorInfo
from npuw_layer.execution.experts.container import ExpertEntry

WEIGHTS = (WEIGHT_PREFIX, LITERAL_PREFIX)
"""Prefixes of the names of weight inputs."""


class ProgramPool:
    """Programs of the experts that ran last.

    The least recently used program is bound to another expert's weights. This costs less than a new
    program, and more than a run of a program that is already bound.

    Args:
        limit: number of programs to keep (NPUW_MOE_POOL_SIZE); at least one.
        loaded: loaded models of the programs.
        arena: the rows, shared by all programs.
    """

    def __init__(self, limit: int, loaded: Sequence[LoadedModel], arena: Arena) -> None:
        self._limit = max(1, limit)
        self._loaded = loaded
        self._arena = arena
        self._bound: OrderedDict[int, tuple[int, Program]] = OrderedDict()
        """Index of the loaded model, and its program, by the expert's number."""

    def take(self, expert: ExpertEntry, places: Mapping[str, Place]) -> Program:
        """Return the program of an expert, bound to its weights.

        Args:
            expert: the expert.
            places: locations of all weights, by name.
        """
        if expert.number not in self._bound:
            program = self._free(expert.program)
            for own, name in weight_names(self._loaded[expert.program], expert):
                program.bind(own.name, *places[name])
            self._bound[expert.number] = expert.program, program
        self._bound.move_to_end(expert.number)
        return self._bound[expert.number][1]

    def clear(self) -> None:
        """Forget all programs, because a weight has moved."""
        self._bound.clear()

    def _free(self, number: int) -> Program:
        """Return a program to bind: at the limit the least recently used one, else a new one."""
        if len(self._bound) >= self._limit:
            _, (oldest, program) = self._bound.popitem(last=False)
            if oldest == number:
                return program
        program = self._loaded[number].create_program()
        self._arena.bind(program)
        return program


def weight_names(loaded: LoadedModel, expert: ExpertEntry) -> Iterator[tuple[TensorInfo, str]]:
    """Yield a program's weight inputs, and their names in the mixture."""
    for info in loaded.inputs:
        if info.name.startswith(WEIGHTS):
            yield info, expert.names.get(info.name, info.name)
