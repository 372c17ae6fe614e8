"""The cost model: closed formulas for the duration of a task.

Each engine has one function, which returns the nanoseconds of one task without contention. Each
clock domain counts separately: the DPU multiplies at its own clock, CMX, DMA and SHAVE run at that
of CMX, DDR has a bandwidth. ``npu.timeline`` models the contention between tasks.

    dma    transfers: latency, then the slower of both sides
    dpu    matmuls: the longer of multiplying and reading the operands
    shave  SHAVE programs: a constant per call, then the longer of arithmetic and memory access

Accuracy. These are first-order formulas of the public cost model, which calls its own DPU formula
unmaintained; none of them has been checked against silicon here. They show the bottleneck of a
task, and compare different tilings of a model. Not counted, for lack of public numbers: fetching
descriptors, issuing tasks, the start and end of an inference.

Source: docs/reference/npu.md#dma-cost, docs/reference/npu.md#dpu-cost,
docs/reference/npu.md#shave-cost (constant set v1). A constant's tag is V for npu-nn-cost-model, A
for an assumption of ours; the tags of platforms' numbers are in the files.
"""

from __future__ import annotations

from driver_layer.abi.cost.dma import Space, dma_ns
from driver_layer.abi.cost.dpu import MatmulShape, dpu_ns
from driver_layer.abi.cost.shave import KernelCounts, kernel_work, shave_ns

__all__ = ["KernelCounts", "MatmulShape", "Space", "dma_ns", "dpu_ns", "kernel_work", "shave_ns"]
