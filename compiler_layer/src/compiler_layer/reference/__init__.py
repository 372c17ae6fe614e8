"""The meaning of each op in numpy; begin with ``interpreter``, which runs whole models.

meaning    the table of meanings, which ``ov`` and ``npu`` fill when this package is imported
ov/, npu   the meanings of the two dialects; modules of ``ov`` are named as the dialect's
raw_floats bf16 and f8, computed in f32
"""

from compiler_layer.reference import npu, ov

__all__ = ["npu", "ov"]
