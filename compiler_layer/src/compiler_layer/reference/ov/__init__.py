"""The ``ov`` ops in numpy, in modules named like the dialect's.

Begin with ``elementwise``. Each module registers its functions in ``reference.meaning``.
"""

from compiler_layer.reference.ov import (
    activation,
    attention,
    convolution,
    elementwise,
    gather,
    group_query_attention,
    indexing,
    interpolate,
    logic,
    matmul,
    padding,
    paged_attention,
    quantize,
    random_uniform,
    recurrent,
    reduce,
    scatter,
    shape,
    slicing,
    spectrum,
    strided_slice,
    transposed_convolution,
)

__all__ = [
    "activation",
    "attention",
    "convolution",
    "elementwise",
    "gather",
    "group_query_attention",
    "indexing",
    "interpolate",
    "logic",
    "matmul",
    "padding",
    "paged_attention",
    "quantize",
    "random_uniform",
    "recurrent",
    "reduce",
    "scatter",
    "shape",
    "slicing",
    "spectrum",
    "strided_slice",
    "transposed_convolution",
]
