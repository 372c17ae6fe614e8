"""How the variables of a model lie in a block: all of them side by side, in one piece of memory.

All layers grow by the same tokens, so that a block of tokens is one allocation for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.backends.protocols import READ_PREFIX, Array, Device, Memory, TensorInfo
from npuw_layer.llm.kv.kv_kinds import alike
from npuw_layer.tensors.names import block_of, plain_variable


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A block of tokens in device memory.

    Attributes:
        memory: what it lies in.
        stacks: for variables that are alike each, [variables, rows, heads, width]; views.
    """

    memory: Memory
    stacks: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable is in every block: its stack, its number there, and its first byte."""

    stack: int
    number: int
    offset: int


class BlockLayout:
    """The places of all variables.

    Args:
        states: the inputs for a whole block of each variable.
        rows: tokens of a block.
    """

    def __init__(self, states: Sequence[TensorInfo], rows: int) -> None:
        self.rows = rows
        variables = [(block_of(info.name.removeprefix(READ_PREFIX)), info) for info in states]
        self._kinds = alike((name, info) for name, info in variables if name is not None)
        self.stacks: list[list[str]] = list(self._kinds.values())
        """The variables that are alike, as programs call them."""
        self.places: dict[str, Place] = {}
        """By their plain names."""
        self.nbytes = 0
        """Of a block."""
        for stack, (kind, names) in enumerate(self._kinds.items()):
            pitch = kind.pitch(rows)
            for number, name in enumerate(names):
                offset = self.nbytes + number * pitch
                self.places[plain_variable(name)] = Place(stack, number, offset)
            self.nbytes += len(names) * pitch

    @property
    def largest(self) -> int:
        """Bytes of a block's largest tensor."""
        return max(kind.pitch(self.rows) for kind in self._kinds)

    def empty(self, variable: str) -> Array:
        """No rows of a variable, [0, heads, width]."""
        kind = list(self._kinds)[self.places[variable].stack]
        return kind.empty()

    def allocate(self, device: Device) -> Block:
        """Make a block, zeroed.

        Raises:
            DeviceError: there is no memory left.
        """
        memory = device.allocate(self.nbytes)
        stacks: list[Array] = []
        begin = 0
        for kind, names in self._kinds.items():
            stacks.append(kind.view(memory.data, begin, len(names), self.rows))
            begin += len(names) * kind.pitch(self.rows)
        return Block(memory, tuple(stacks))
