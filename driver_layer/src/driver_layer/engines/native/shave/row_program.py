"""A program with the shapes of its windows, which determine the code of a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.abi.shave import GRID_DIMS, Op
from driver_layer.engines.native.shave.passes import RowPlan
from driver_layer.engines.native.shave.shapes import Shapes
from driver_layer.engines.native.shave.values import Values

WINDOW_WORDS = 1 + GRID_DIMS + 1
"""Words of a window: address, strides, column stride."""


@dataclass(frozen=True, slots=True)
class RowProgram:
    """A program that runs over each row."""

    values: Values
    widths: tuple[int, ...]
    shapes: Shapes
    plan: RowPlan

    @property
    def width_count(self) -> int:
        """Number of different widths."""
        return 1 + max([self.shapes.iota, *(window.width for window in self.shapes.windows)])

    @property
    def first_window(self) -> int:
        """Index of the first window's first word in the kernel's arguments."""
        return GRID_DIMS + self.width_count + len(self.plan.slot_widths)

    @property
    def word_count(self) -> int:
        """Number of the kernel's arguments."""
        return self.first_window + WINDOW_WORDS * len(self.shapes.windows)

    @property
    def key(self) -> str:
        """Identifier of the code; equal for programs with equal code."""
        nodes = " ".join(
            f"{node.op.name}{list(node.sources)}{node.window}:{node.imm}:{width}"
            for node, width in zip(self.values.nodes, self.widths, strict=True)
        )
        windows = " ".join(
            f"{window.kind.name}:{window.columns.value}:{window.width}"
            for window in self.shapes.windows
        )
        return f"shave {nodes} st {list(self.values.stores)} w {windows} {self.shapes.iota}"

    def turns_within(self, columns: tuple[int, ...]) -> bool:
        """Return whether no rotation exceeds its row.

        Args:
            columns: number of columns of each width.
        """
        nodes = zip(self.values.nodes, self.widths, strict=True)
        return all(node.imm < columns[width] for node, width in nodes if node.op is Op.ROT)

    def slot_bytes(self, columns: tuple[int, ...]) -> list[int]:
        """Return the bytes of each slot, a multiple of 64.

        Args:
            columns: number of columns of each width.
        """
        sizes: list[int] = []
        for slot, width in enumerate(self.plan.slot_widths):
            rows = 2 if slot in self.plan.doubled else 1
            sizes.append(-(-4 * rows * columns[width] // 64) * 64)
        return sizes
