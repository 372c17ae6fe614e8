"""OpenVINO IR: ``openvino_model.xml`` with its ``.bin``."""

from compiler_layer.writers.openvino_ir.write import ir_bytes, weight_bytes, write_ir

__all__ = ["ir_bytes", "weight_bytes", "write_ir"]
