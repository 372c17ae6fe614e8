"""Unrolling of each hardware op to steps of tasks, block by block; begin with ``unroll_all``.

matmul, attention, kernel, dma  one kind of op each
blocks                          ranges of dimensions
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler_layer.dialects import npu
from compiler_layer.schedule.layout import BufferLayout, HardwareOp
from compiler_layer.schedule.tasks import Step
from compiler_layer.schedule.unroll.attention import unroll_attention
from compiler_layer.schedule.unroll.dma import unroll_concat, unroll_copy, unroll_gather
from compiler_layer.schedule.unroll.kernel import unroll_kernel
from compiler_layer.schedule.unroll.matmul import unroll_matmul
from driver_layer.abi.platforms import Platform


def unroll_all(laid_out: BufferLayout, platform: Platform) -> list[Step]:
    """Return the steps of all ops; each may use half of a tile's CMX."""
    budget = platform.workspace_bytes // 2
    return [step for index, op in enumerate(laid_out.ops) for step in unroll(index, op, budget)]


def unroll(index: int, op: HardwareOp, budget: int) -> Iterator[Step]:
    """Yield the steps of an op.

    Args:
        index: number of the op, stored in its steps.
        op: the op with operands and results in memory, and with its blocks chosen.
        budget: maximum bytes of CMX per step.
    """
    match op.op:
        case None:
            yield from unroll_copy(index, op)
        case npu.MatMul():
            yield from unroll_matmul(index, op, op.op)
        case npu.Attention():
            yield from unroll_attention(index, op, op.op)
        case npu.Kernel():
            yield from unroll_kernel(index, op, op.op)
        case npu.Gather():
            yield from unroll_gather(index, op, budget)
        case npu.Concat():
            yield from unroll_concat(index, op, op.op)
        case _:
            raise AssertionError(f"layout should have rejected {op.name}")
