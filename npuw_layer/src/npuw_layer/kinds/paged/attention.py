"""A device that computes attention over paged caches on the host, in numpy.

Caches and tables are bound to memory of any size, and fill it. Of the rows of tokens, only those
that the tables assign to a sequence are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from compiler_layer.dialects.ov.paged_attention import CACHES, PagedAttentionExtension
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.interpreter import GraphProgram, InterpreterDevice, LoadedGraph
from npuw_layer.backends.protocols import Array, Memory, TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.kinds.paged.names import SUBSEQUENCE_BEGINS, TABLES


class PagedAttentionDevice(InterpreterDevice):
    """Device for models of one attention each."""

    @property
    def version(self) -> str:
        """Version of the interpreter that computes attention."""
        return f"paged attention, {super().version}"

    def load(self, program: bytes | memoryview) -> LoadedAttention:
        """Load a graph.

        Raises:
            DeviceError: the bytes are not such a graph.
        """
        return LoadedAttention(super().load(program).model)


class LoadedAttention(LoadedGraph):
    """One loaded attention.

    Raises:
        DeviceError: the graph is not one attention.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        ops = [op for op in model.body.ops if isinstance(op, PagedAttentionExtension)]
        if len(ops) != 1:
            raise DeviceError(f"the graph has {len(ops)} paged attentions, not one")
        names = {port.value: port.name for port in model.inputs}
        operands = [names.get(value, "") for value in ops[0].operands]
        if "" in operands[: CACHES[0] + len(CACHES) + len(TABLES)]:
            raise DeviceError("an operand of the paged attention is not an input of the graph")
        self.rows = frozenset(operands[: CACHES[0]])
        """Inputs with a row for each token."""
        self.open = dict(zip(operands[CACHES[0] :], ("", "", *TABLES), strict=False))
        """Inputs that fill their memory, mapped to the table's name; "" for caches."""
        self.model = model.clone()
        self.model.set_input_shapes(
            {
                info.name: (-1, *info.shape[1:])
                for info in self.inputs
                if info.name in self.rows or info.name in self.open
            }
        )

    def create_program(self) -> AttentionProgram:
        """Create a program to bind and run."""
        return AttentionProgram(self)


class AttentionProgram(GraphProgram):
    """Program of an attention."""

    def __init__(self, loaded: LoadedAttention) -> None:
        fixed = [info for info in loaded.inputs if info.name not in loaded.open]
        super().__init__(loaded.model, fixed, loaded.outputs)
        self._loaded = loaded
        self._infos = {info.name: info for info in loaded.inputs}
        self._open: dict[str, Array] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory; caches and tables fill it from the offset on.

        Raises:
            DeviceError: no such tensor exists, or it does not fit.
        """
        if name in self._loaded.open:
            self._open[name] = _all_of(self._infos[name], memory, offset)
        else:
            super().bind(name, memory, offset)

    def run(self) -> None:
        """Write the new rows into the caches, and compute attention.

        Raises:
            DeviceError: a tensor is not bound, or the tables do not fit.
        """
        self._tensors.check_bound()
        missing = self._loaded.open.keys() - self._open.keys()
        if missing:
            raise DeviceError(f"not bound: {', '.join(sorted(missing))}")
        tables = {table: self._open[name] for name, table in self._loaded.open.items() if table}
        tokens = int(tables[SUBSEQUENCE_BEGINS][-1])
        try:
            found = self._interpreter.run(dict(self._unpadded(tokens)))
        except (CompilerError, ArithmeticError, LookupError, MemoryError, ValueError) as error:
            raise DeviceError(f"paged attention: {error}") from error
        for info in self._loaded.outputs:
            rows = self._tensors[info.name]
            rows[:tokens] = found[info.name]
            rows[tokens:] = 0

    def _unpadded(self, tokens: int) -> Iterator[tuple[str, Array]]:
        """Yield the inputs without padding."""
        for name in self._infos:
            if name in self._loaded.open:
                yield name, self._open[name]
            else:
                values = self._tensors[name]
                yield name, values[:tokens] if name in self._loaded.rows else values


def _all_of(info: TensorInfo, memory: Memory, offset: int) -> Array:
    """View all memory from an offset on as a tensor; ``info`` describes one row of it.

    Raises:
        DeviceError: the last row is incomplete.
    """
    kind, inner = ELEMENT_TYPES[info.element], info.shape[1:]
    raw = memory.data[offset:]
    size = kind.itemsize * math.prod(inner)
    if not size or raw.size % size:
        raise DeviceError(f"{info.name!r} has {raw.size} bytes, not complete rows {list(inner)}")
    return raw.view(kind).reshape(-1, *inner)
