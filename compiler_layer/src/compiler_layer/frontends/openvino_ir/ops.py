"""Which layers of an IR are understood, and how each becomes an op.

A row of the table says which opsets of a layer mean the same to us, how many of its inputs are
fixed (the rest form one variadic or optional operand), and which attributes become properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from compiler_layer.dialects.ov import OPS
from compiler_layer.dialects.ov.op import OvOp, bool_attr, int_attr

Property = Callable[[str], Attribute]


def _flag(text: str) -> Attribute:
    return bool_attr(text in ("true", "1"))


def _integer(text: str) -> Attribute:
    return int_attr(int(text))


@dataclass(frozen=True, slots=True)
class LayerRule:
    """How a layer becomes an op."""

    opsets: frozenset[str]
    inputs: tuple[int, int]
    """The least and the most inputs it has."""
    fixed: int | None = None
    """How many of them are operands of their own; None if all are."""
    properties: Mapping[str, tuple[Property, str | None]] = field(
        default_factory=dict[str, tuple[Property, str | None]]
    )
    """For each attribute, how to read it, and its default; None where it must be there."""


def _rule(
    opsets: str,
    least: int,
    most: int | None = None,
    fixed: int | None = None,
    **properties: tuple[Property, str | None],
) -> LayerRule:
    numbered = frozenset(f"opset{number}" for number in opsets.split())
    return LayerRule(numbered, (least, least if most is None else most), fixed, properties)


_STRING: Property = StringAttr
_KEEP = (_flag, "false")
_MANY = 1 << 16

RULES: dict[str, LayerRule] = {
    **{name: _rule("1", 1) for name in ("Sqrt", "Exp", "Sin", "Cos", "Tanh", "Sigmoid")},
    **{name: _rule("1", 1) for name in ("Negative", "Abs", "Floor")},
    "Swish": _rule("4", 1, 2, fixed=1),
    **{name: _rule("1", 2) for name in ("Add", "Subtract", "Multiply", "Divide", "Power")},
    **{name: _rule("1", 2) for name in ("Minimum", "Maximum", "LogicalAnd", "Equal")},
    **{name: _rule("1", 2) for name in ("Less", "LessEqual", "Greater", "GreaterEqual")},
    "BitwiseAnd": _rule("13", 2),
    "Select": _rule("1", 3),
    "Convert": _rule("1", 1, destination_type=(_STRING, None)),
    "MatMul": _rule("1", 2, transpose_a=(_flag, "false"), transpose_b=(_flag, "false")),
    "ReduceMean": _rule("1", 2, keep_dims=_KEEP),
    "ReduceSum": _rule("1", 2, keep_dims=_KEEP),
    "ReduceMax": _rule("1", 2, keep_dims=_KEEP),
    "ReduceProd": _rule("1", 2, keep_dims=_KEEP),
    "SoftMax": _rule("1 8", 1, axis=(_integer, "1")),
    "ShapeOf": _rule("1 3", 1, output_type=(_STRING, "i64")),
    "Reshape": _rule("1", 2, special_zero=(_flag, None)),
    "Transpose": _rule("1", 2),
    "Unsqueeze": _rule("1", 2),
    "Squeeze": _rule("1 15", 1, 2, fixed=1),
    "Broadcast": _rule("1 3", 2, mode=(_STRING, "numpy")),
    "Concat": _rule("1", 1, _MANY, fixed=0, axis=(_integer, None)),
    "Slice": _rule("8", 4, 5, fixed=4),
    "Split": _rule("1", 2, num_splits=(_integer, None)),
    "VariadicSplit": _rule("1", 3),
    "Gather": _rule("1 7 8", 3, batch_dims=(_integer, "0")),
    "Range": _rule("4", 3, output_type=(_STRING, None)),
    "ScaledDotProductAttention": _rule("13", 3, 5, fixed=3, causal=(_flag, "false")),
}
"""The layers that are understood, besides Parameter, Const, Result, ReadValue and Assign."""


_SPELLED_OTHERWISE = {"SoftMax": "Softmax"}
"""Layers whose type in files differs from the op's name in the documentation."""


def build(kind: str, operands: Sequence[SSAValue], data: Mapping[str, str]) -> OvOp:
    """Make the op of a layer.

    Raises:
        ValueError: it has too few or too many inputs, an attribute is missing or malformed, or the
            operands do not fit together.
    """
    rule = RULES[kind]
    least, most = rule.inputs
    if not least <= len(operands) <= most:
        raise ValueError(f"{kind} has {len(operands)} inputs")
    if data.get("auto_broadcast", "numpy") != "numpy":
        raise ValueError(f"broadcasting of kind {data['auto_broadcast']} is not supported")
    properties: dict[str, Attribute] = {}
    for name, (read, default) in rule.properties.items():
        text = data.get(name, default)
        if text is None:
            raise ValueError(f"attribute {name} is missing")
        properties[name] = read(text)
    made = OPS[_SPELLED_OTHERWISE.get(kind, kind)]
    if rule.fixed is None:
        return made.make(list(operands), **properties)
    grouped = [*operands[: rule.fixed], list(operands[rule.fixed :])]
    return made.make(grouped, **properties)
