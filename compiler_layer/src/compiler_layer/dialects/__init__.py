"""The compiler's dialects; begin with ``ov.op``, the base class of a model's ops.

ov   a model's graph, with OpenVINO's op names and semantics
npu  the hardware's ops
"""
