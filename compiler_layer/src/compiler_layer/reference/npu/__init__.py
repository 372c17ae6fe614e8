"""The ``npu`` ops in numpy, in modules named as those of the dialect."""

from compiler_layer.reference.npu import dma, dpu, shave

__all__ = ["dma", "dpu", "shave"]
