"""The ``npu`` dialect: hardware ops on tensors in DDR, before tiling; begin with ``dpu``.

dpu    matmuls and attention
shave  kernels, with the ``ov`` ops that they compute
dma    gathers, concatenations, and the bytes of 4-bit inputs
"""

from __future__ import annotations

from xdsl.ir import Dialect

from compiler_layer.dialects.npu.dma import Bytes, Concat, Gather
from compiler_layer.dialects.npu.dpu import Attention, MatMul
from compiler_layer.dialects.npu.shave import Kernel, Yield

__all__ = ["NPU", "Attention", "Bytes", "Concat", "Gather", "Kernel", "MatMul", "Yield"]

NPU = Dialect("npu", [Attention, Bytes, Concat, Gather, Kernel, MatMul, Yield], [])
"""Dialect object, for xDSL's context."""
