"""Prices of ops that the ``tile`` pass does not cut: they only move bytes."""

from __future__ import annotations

from compiler_layer.dialects import npu
from compiler_layer.passes.tile.machine import Price
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.views import View
from driver_layer.abi.cost import Space as Memory
from driver_layer.abi.cost import dma_ns
from driver_layer.abi.platforms import Platform


def price_copies(op: HardwareOp, platform: Platform) -> Price:
    """Price copies within DDR; a gather passes through CMX."""
    (target,) = op.results
    if isinstance(op.op, npu.Gather):
        ns = 2 * dma_ns(platform, target.nbytes, Memory.DDR, Memory.CMX)
        return Price(ns, ns, 0.0, 0.0, 3.0, 0.0, 0.0)
    run, ddr = _run(target) if op.op is None else None, Memory.DDR
    ns = sum(dma_ns(platform, each.nbytes, ddr, ddr, _run(each), run) for each in op.operands)
    return Price(ns, ns, 0.0, 0.0, float(len(op.operands)), 0.0, 0.0)


def _run(view: View) -> int:
    """Return the length of contiguous runs in bytes."""
    run = view.itemsize
    for size, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size > 1 and stride != run:
            break
        run *= size
    return run
