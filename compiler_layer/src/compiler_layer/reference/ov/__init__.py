"""The ``ov`` ops in numpy, in modules named as those of the dialect."""

from compiler_layer.reference.ov import (
    attention,
    elementwise,
    gather,
    matmul,
    reduce,
    shape,
    slicing,
)

__all__ = ["attention", "elementwise", "gather", "matmul", "reduce", "shape", "slicing"]
