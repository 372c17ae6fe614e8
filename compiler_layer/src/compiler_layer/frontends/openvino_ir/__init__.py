"""OpenVINO IR: ``openvino_model.xml`` with its ``.bin``."""

from compiler_layer.frontends.openvino_ir.read import read_ir

__all__ = ["read_ir"]
