"""What a task costs: closed formulas over a platform and plain numbers.

How it works. Each engine has one function that gives nanoseconds for one task that has the device
for itself. Clocks are kept apart: the DPU multiplies at its own, CMX, DMA and SHAVE run at that of
CMX, DDR has a bandwidth. What tasks do to each other is the matter of ``npu.timeline``.

    dma    transfers: latency, then the slower of both sides
    dpu    matrix products: multiplying or reading operands, whichever takes longer
    shave  SHAVE programs: a price for the call, then arithmetic or memory, whichever takes longer

How far to trust it. These are first-order formulas of the public cost model, which calls its own
DPU formula unmaintained; none of them has been checked against silicon here. They say what a task
is bound by, and compare one way of cutting a model with another. Not counted, since nothing public
says how long it takes: fetching descriptors, issuing tasks, the start and end of an inference.

Source: fact sheets elf_driver §6.2 (constant set v1) and simulators_npu §c. A constant's tag is V
for npu-nn-cost-model, A for an assumption of ours; platforms' numbers have theirs in the files.
"""

from __future__ import annotations

from driver_layer.abi.cost.dma import Space, dma_ns
from driver_layer.abi.cost.dpu import DpuWork, dpu_ns
from driver_layer.abi.cost.shave import ShaveWork, kernel_work, shave_ns

__all__ = ["DpuWork", "ShaveWork", "Space", "dma_ns", "dpu_ns", "kernel_work", "shave_ns"]
