"""The ``ov`` ops in numpy, in modules named as those of the dialect."""

from compiler_layer.reference.ov import (
    activation,
    attention,
    convolution,
    elementwise,
    gather,
    group_query_attention,
    indexing,
    logic,
    matmul,
    padding,
    quantize,
    reduce,
    scatter,
    shape,
    slicing,
    strided_slice,
)

__all__ = [
    "activation",
    "attention",
    "convolution",
    "elementwise",
    "gather",
    "group_query_attention",
    "indexing",
    "logic",
    "matmul",
    "padding",
    "quantize",
    "reduce",
    "scatter",
    "shape",
    "slicing",
    "strided_slice",
]
