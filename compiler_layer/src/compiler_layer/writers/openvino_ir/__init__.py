"""OpenVINO IR: ``openvino_model.xml`` with its ``.bin``."""

from compiler_layer.writers.openvino_ir.write import write_ir

__all__ = ["write_ir"]
