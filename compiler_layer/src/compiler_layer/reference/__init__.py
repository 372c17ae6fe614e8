"""Reference semantics of each op in numpy; begin with ``interpreter``, which runs complete models.

meaning    table of op functions, which ``ov`` and ``npu`` fill when this package is imported
ov/, npu   functions for the two dialects, in modules of op families
"""

from compiler_layer.reference import npu, ov

__all__ = ["npu", "ov"]
