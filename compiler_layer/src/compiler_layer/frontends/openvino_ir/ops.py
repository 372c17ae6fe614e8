"""Conversion of an IR's layers to ops, and of ops to layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import VariadicDef

from compiler_layer.dialects.ov import OPS
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.frontends.openvino_ir.layer_rule import OneOf
from compiler_layer.frontends.openvino_ir.rules import ELEMENT, RULES

_SPELLED_OTHERWISE = {
    "SoftMax": "Softmax",
    "SoftPlus": "Softplus",
    "ReLU": "Relu",
    "PReLU": "PRelu",
}
"""Layers whose type in files differs from the op's documented name."""

_CONVERT_LIKE = "ConvertLike"
"""Layer that is read as a Convert to the type of its second input."""

_ANYWHERE = {"auto_broadcast": (OneOf("numpy"), None)}
"""Parsers of attributes that layers of any type may have."""


def unsupported_value(kind: str, data: Mapping[str, str]) -> str | None:
    """Return the attribute of a layer whose value is not supported, or None."""
    for name, (reader, default) in {**RULES[kind].properties, **_ANYWHERE}.items():
        text = data.get(name, default)
        if isinstance(reader, OneOf) and text is not None and text not in reader:
            return f"of {text}" if reader is ELEMENT else f"with {name} {text!r}"
    return None


def build(kind: str, operands: Sequence[SSAValue], data: Mapping[str, str]) -> OvOp:
    """Build the op of a layer.

    Raises:
        ValueError: the number of inputs is wrong, an attribute is missing or malformed, or the
            operands do not fit together.
    """
    least, most = input_counts(kind)
    if not least <= len(operands) <= most:
        raise ValueError(f"{kind} cannot have {len(operands)} inputs")
    properties: dict[str, Attribute] = {}
    for name, (read, default) in RULES[kind].properties.items():
        text = data.get(name, default)
        if text is None:
            raise ValueError(f"attribute {name} is missing")
        properties[name] = read(text)
    if kind == _CONVERT_LIKE:
        return Convert.make([operands[0]], destination_type=StringAttr(element_of(operands[1])))
    single, others = _operands(kind)
    grouped = [*operands[:single], list(operands[single:])] if others else operands
    return _op_of(kind).make(grouped, **properties)


def input_counts(kind: str) -> tuple[int, int]:
    """Return the minimum and the maximum number of a layer's inputs."""
    single, others = (2, False) if kind == _CONVERT_LIKE else _operands(kind)
    least, most = RULES[kind].variadic if others else (0, 0)
    return single + least, single + most


def _operands(kind: str) -> tuple[int, bool]:
    """Return the number of single operands of a layer's op, and whether others may follow."""
    kinds = [each for _, each in _op_of(kind).get_irdl_definition().operands]
    single = sum(not isinstance(each, VariadicDef) for each in kinds)
    return single, single < len(kinds)


def _op_of(kind: str) -> type[OvOp]:
    return OPS[_SPELLED_OTHERWISE.get(kind, kind)]


_SPELLED_IN_FILES = {name: kind for kind, name in _SPELLED_OTHERWISE.items()}


def kind_of(op: OvOp) -> str:
    """Return the type of an op in files, even if no rule exists for it."""
    name = op.name.removeprefix("ov.")
    return _SPELLED_IN_FILES.get(name, name)


def newest_opset(kind: str) -> str:
    """Return the newest opset with the supported meaning of a layer."""
    return max(RULES[kind].opsets, key=lambda opset: (len(opset), opset))


def layer_kind(op: OvOp) -> str:
    """Return the documented type of an op with its opset: ``Gather-8``."""
    kind = kind_of(op)
    return f"{kind}-{newest_opset(kind).removeprefix('opset')}" if kind in RULES else kind


def attributes_of(op: OvOp) -> dict[str, str]:
    """Return the attributes of an op's layer, from which ``build`` makes the op's properties."""
    return {name: _text(op.properties[name]) for name in RULES[kind_of(op)].properties}


def _text(attribute: Attribute) -> str:
    match attribute:
        case StringAttr():
            return attribute.data
        case FloatAttr():
            return repr(attribute.value.data)
        case IntegerAttr():
            number = attribute.value.data
            # The value of an i1 attribute may be -1 or 1.
            return str(number) if attribute.type != i1 else ("true" if number else "false")
        case DenseArrayBase():
            numbers = cast(DenseArrayBase[IntegerType], attribute)
            return ", ".join(str(number) for number in numbers.get_values())
        case _:
            raise TypeError(f"{attribute} cannot be an attribute of a layer")
