"""The ``ov`` dialect: a model's graph, with OpenVINO's op names and semantics.

Begin with ``op``, the base class of all ops, and ``types``; ``constant`` holds weights. Each other
module has the ops of one family.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from xdsl.ir import Dialect

from compiler_layer.dialects.ov.constant_value import FileAttr, InlineAttr, RepeatedAttr
from compiler_layer.dialects.ov.op import OPS
from compiler_layer.dialects.ov.types import NF4Type

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)  # its classes enter OPS

OV = Dialect("ov", [*OPS.values()], [FileAttr, InlineAttr, RepeatedAttr, NF4Type])
"""Dialect object, for xDSL's context."""

__all__ = ["OPS", "OV"]
