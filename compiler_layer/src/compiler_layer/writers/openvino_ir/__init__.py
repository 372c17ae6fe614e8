"""OpenVINO IR: ``openvino_model.xml`` with its ``.bin``; begin with ``write``.

layers, xml  ops as layers, and layers as text
weights      places of constants in the ``.bin``
"""

from compiler_layer.writers.openvino_ir.write import ir_bytes, weight_bytes, write_ir

__all__ = ["ir_bytes", "weight_bytes", "write_ir"]
