"""OpenVINO IR: ``openvino_model.xml`` with its ``.bin``; begin with ``read``.

xml, supported           the parsed file, and a check of all its layers
ops, rules, layer_rule   the table of layers, and the conversion between layers and ops
"""

from compiler_layer.frontends.openvino_ir.read import read_ir

__all__ = ["read_ir"]
