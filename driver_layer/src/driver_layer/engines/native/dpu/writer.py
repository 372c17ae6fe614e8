"""Base class of the kernels' writers: the steps that the families share."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from driver_layer.engines.native.dpu.finish import SumTile, TaskRange, finish
from driver_layer.engines.native.dpu.problem import MatmulProblem
from driver_layer.engines.native.dpu.rows import Row, widen_row
from driver_layer.engines.native.dpu.tables import take_table
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec


class KernelWriter:
    """Writer of one kernel.

    Args:
        problem: the problem that the kernel computes.
        e: emitter of the kernel.
    """

    family: ClassVar[str]
    """Name of the family in the kernels' keys."""

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        self.problem, self.e, self.b = problem, e, e.b
        self.rows = problem.rows
        self.task = KernelArguments(problem, e)
        self._reserved: Value = I64(0)

    @classmethod
    def spec(cls, problem: MatmulProblem) -> KernelSpec:
        """Return the kernel that this class writes for a problem."""
        return KernelSpec(f"dpu {cls.family} {problem.key}", partial(cls.text, problem))

    @classmethod
    def text(cls, problem: MatmulProblem, host: Host) -> str:
        """Return the kernel's module of LLVM IR."""
        e = Emitter(host)
        cls(problem, e).write()
        return e.finish()

    def write(self) -> None:
        """Write the kernel's body."""
        with self.e.loop(0, self.task[Word.BATCH]) as batch:
            self.write_batch(batch)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        raise NotImplementedError

    def reserve(self, size: Value, times: int = 1) -> Value:
        """Reserve ``times`` as many bytes of scratch; return their address."""
        begin = self._reserved
        self._reserved = self.b.add(begin, self.b.mul(size, I64(times)))
        return self.e.at(self.e.scratch, begin)

    def act_row(self, batch: Value, row: Value) -> Row:
        """Return a row of activations; a missing row has no elements."""
        b, task = self.b, self.task
        there = b.icmp_signed("<", row, task[Word.M])
        count = b.select(there, task[Word.K], I64(0))
        source = task.address(Word.ACT, (batch, Word.ACT_B), (row, Word.ACT_M))
        return Row(self.problem.act, source, task[Word.ACT_K], count)

    def columns_from(self, n: Value, number: int, count: Value) -> list[Value]:
        """Return ``number`` columns from n on, repeating the last of ``count`` columns."""
        last = self.b.sub(count, I64(1))
        return [self.task.least(self.b.add(n, I64(i)), last) for i in range(number)]

    def weights_of(self, batch: Value, columns: list[Value]) -> list[Value]:
        """Return the address of each column's weights."""
        return [
            self.task.address(Word.WEIGHT, (batch, Word.WEIGHT_B), (column, Word.WEIGHT_N))
            for column in columns
        ]

    def take_tables(
        self, groups: Value, scales: Value, zeros: Value, columns: TaskRange | None = None
    ) -> None:
        """Convert scales and zero points to f32 in scratch; see ``take_table``."""
        take_table(self.task, Word.SCALE, groups, scales, columns)
        take_table(self.task, Word.ZERO, groups, zeros, columns)

    def widen_scales(self, columns: TaskRange, target: Value) -> None:
        """Convert the scales of columns, which have one group, to f32 at an address."""
        task = self.task
        address = task.address(Word.SCALE, (columns.begin, Word.SCALE_N))
        row = Row(self.problem.scale, address, task[Word.SCALE_N], columns.count)
        widen_row(self.e, row, target)

    def take_common_scales(self, depth: TaskRange, target: Value) -> None:
        """Convert the scales of a range of k, which all columns share, to f32 at an address."""
        task = self.task
        address = task.address(Word.SCALE, (depth.begin, Word.SCALE_GROUP))
        row = Row(self.problem.scale, address, task[Word.SCALE_GROUP], depth.count)
        widen_row(self.e, row, target)

    def finish_all(self, batch: Value, tile: SumTile) -> None:
        """Store all rows and columns, whose sums are in a tile."""
        task = self.task
        every = TaskRange(I64(0), task[Word.M]), TaskRange(I64(0), task[Word.N])
        finish(task, tile, batch, every)
