"""Which layers of an IR are understood, how each becomes an op, and an op such a layer again.

A row of the table says which opsets of a layer mean the same to us, how many of its inputs are
fixed (the rest form one variadic or optional operand), and which attributes become properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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

from compiler_layer.dialects.ov import OPS
from compiler_layer.dialects.ov.op import OvOp, bool_attr, float_attr, int_attr, ints_attr
from compiler_layer.elements import FLOAT8, NUMPY

Property = Callable[[str], Attribute]


def _flag(text: str) -> Attribute:
    return bool_attr(text in ("true", "1"))


def _integer(text: str) -> Attribute:
    return int_attr(_int64(text))


def _integers(text: str) -> Attribute:
    return ints_attr([_int64(part) for part in text.split(",") if part.strip()])


def _int64(text: str) -> int:
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"an integer of {number.bit_length()} bits")
    return number


def _float(text: str) -> Attribute:
    return float_attr(float(text))


class Words:
    """Reads one of some words, however it is capitalised and spaced.

    Args:
        allowed: as the op wants them.
    """

    def __init__(self, *allowed: str) -> None:
        self.words = allowed
        self._spelled = {_spelled(word): word for word in allowed}

    def __contains__(self, text: str) -> bool:
        return _spelled(text) in self._spelled

    def __call__(self, text: str) -> Attribute:
        """Give the word as a property."""
        return StringAttr(self._spelled[_spelled(text)])


def _spelled(word: str) -> str:
    return word.lower().replace(" ", "")


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
    constants: tuple[int, ...] = ()
    """Inputs without whose values not even the rank of the result is known."""


def _rule(
    opsets: str,
    least: int,
    most: int | None = None,
    fixed: int | None = None,
    constants: tuple[int, ...] = (),
    **properties: tuple[Property, str | None],
) -> LayerRule:
    numbered = frozenset(f"opset{number}" for number in opsets.split())
    inputs = (least, least if most is None else most)
    return LayerRule(numbered, inputs, fixed, properties, constants)


EXTENSION = "extension"
"""The opset of what OpenVINO makes of other frameworks' own ops."""

_ELEMENT = Words(*NUMPY)
_KEEP = (_flag, "false")
_MANY = 1 << 16

_INTEGER_0 = (_integer, "0")
_NUMBER = (_integer, None)
_NUMBERS = (_integers, None)


def _sliding() -> LayerRule:
    """Of convolutions."""
    return _rule(
        "1",
        2,
        strides=_NUMBERS,
        pads_begin=_NUMBERS,
        pads_end=_NUMBERS,
        dilations=_NUMBERS,
        auto_pad=(Words("explicit", "same_upper", "same_lower", "valid"), "explicit"),
    )


def _scattered() -> LayerRule:
    """Of transposed convolutions."""
    return _rule(
        "1",
        2,
        strides=_NUMBERS,
        pads_begin=_NUMBERS,
        pads_end=_NUMBERS,
        dilations=_NUMBERS,
        auto_pad=(Words("explicit"), "explicit"),
        output_padding=(_integers, ""),
    )


_UNARY = (
    *("Sqrt", "Exp", "Log", "Sin", "Cos", "Atan", "Tanh", "Sigmoid", "Negative", "Abs", "Sign"),
    *("Floor", "Ceiling", "ReLU", "Erf", "LogicalNot"),
)
_BINARY = (
    *("Add", "Subtract", "Multiply", "Divide", "Power", "Minimum", "Maximum", "Mod", "FloorMod"),
    *("LogicalAnd", "LogicalOr", "Equal", "NotEqual", "Less", "LessEqual"),
    *("Greater", "GreaterEqual"),
)
_REDUCTIONS = (
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceLogicalAnd", "ReduceLogicalOr"),
)
_STRIDED_MASKS = {
    name: (_integers, "")
    for name in ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
}

RULES: dict[str, LayerRule] = {
    **{name: _rule("1", 1) for name in _UNARY},
    **{name: _rule("1", 2) for name in (*_BINARY, "SquaredDifference")},
    "LogicalXor": _rule("1 2", 2),
    **{name: _rule("1", 2, constants=(1,), keep_dims=_KEEP) for name in _REDUCTIONS},
    **{name: _rule("4", 2, constants=(1,), keep_dims=_KEEP) for name in ("ReduceL1", "ReduceL2")},
    **{name: _rule("13", 2) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{name: _rule("15", 2) for name in ("BitwiseLeftShift", "BitwiseRightShift")},
    "BitwiseNot": _rule("13", 1),
    "Round": _rule("5", 1, mode=(Words("half_to_even", "half_away_from_zero"), "half_to_even")),
    "PReLU": _rule("1", 2),
    "Swish": _rule("4", 1, 2, fixed=1),
    "Gelu": _rule("2 7", 1, approximation_mode=(Words("ERF", "TANH"), "ERF")),
    "ErfInv": _rule("17", 1),
    "SoftPlus": _rule("4", 1),
    "HSwish": _rule("4", 1),
    "Clamp": _rule("1", 1, min=(_float, None), max=(_float, None)),
    "FakeQuantize": _rule("1", 5, levels=(_integer, None)),
    "FakeConvert": _rule("13", 2, 3, fixed=2, destination_type=(Words(*sorted(FLOAT8)), "f8e4m3")),
    "Select": _rule("1", 3),
    "Convert": _rule("1", 1, destination_type=(_ELEMENT, None)),
    "MatMul": _rule("1", 2, transpose_a=(_flag, "false"), transpose_b=(_flag, "false")),
    "Convolution": _sliding(),
    "GroupConvolution": _sliding(),
    "ConvolutionBackpropData": _scattered(),
    "GroupConvolutionBackpropData": _scattered(),
    "LSTMSequence": _rule(
        "5",
        7,
        hidden_size=_NUMBER,
        direction=(Words("forward", "reverse", "bidirectional"), None),
        activations=(Words("sigmoid,tanh,tanh"), "sigmoid,tanh,tanh"),
        activations_alpha=(Words(""), ""),
        activations_beta=(Words(""), ""),
        clip=(Words("0"), "0"),
    ),
    "Interpolate": _rule(
        "11",
        3,
        constants=(2,),
        mode=(Words("nearest", "linear"), None),
        shape_calculation_mode=(Words("scales"), None),
        coordinate_transformation_mode=(
            Words("half_pixel", "pytorch_half_pixel", "asymmetric"),
            "half_pixel",
        ),
        nearest_mode=(
            Words("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
            "round_prefer_floor",
        ),
        antialias=(Words("false"), "false"),
        pads_begin=(_integers, ""),
        pads_end=(_integers, ""),
    ),
    "STFT": _rule("15", 4, transpose_frames=_KEEP),
    "ISTFT": _rule("16", 4, center=_KEEP, normalized=(Words("false"), "false")),
    "RandomUniform": _rule(
        "8",
        3,
        output_type=(Words("f32"), None),
        global_seed=_INTEGER_0,
        op_seed=_INTEGER_0,
        alignment=(Words("tensorflow"), "tensorflow"),
    ),
    "Roll": _rule("7", 3),
    "SoftMax": _rule("1 8", 1, axis=(_integer, "1")),
    "LogSoftmax": _rule("5", 1, axis=(_integer, "1")),
    "CumSum": _rule("3", 2, exclusive=_KEEP, reverse=_KEEP),
    "MVN": _rule(
        "6",
        2,
        normalize_variance=(_flag, "true"),
        eps=(_float, None),
        eps_mode=(Words("inside_sqrt", "outside_sqrt"), "inside_sqrt"),
    ),
    "GroupNormalization": _rule("12", 3, num_groups=(_integer, None), epsilon=(_float, None)),
    "ShapeOf": _rule("1 3", 1, output_type=(_ELEMENT, "i64")),
    "Reshape": _rule("1", 2, special_zero=(_flag, None)),
    "Transpose": _rule("1", 2, constants=(1,)),
    "Unsqueeze": _rule("1", 2, constants=(1,)),
    "Squeeze": _rule("1 15", 1, 2, fixed=1, constants=(1,)),
    "Broadcast": _rule("1 3", 2, mode=(Words("numpy", "bidirectional"), "numpy")),
    "Tile": _rule("1", 2),
    "Pad": _rule(
        "1 12", 3, 4, fixed=3, pad_mode=(Words("constant", "edge", "reflect", "symmetric"), None)
    ),
    "Concat": _rule("1", 1, _MANY, fixed=0, axis=(_integer, None)),
    "Slice": _rule("8", 4, 5, fixed=4),
    "StridedSlice": _rule("1", 3, 4, fixed=3, constants=(1, 2, 3), **_STRIDED_MASKS),
    "Split": _rule("1", 2, constants=(1,), num_splits=(_integer, None)),
    "VariadicSplit": _rule("1", 3, constants=(1,)),
    "Gather": _rule("1 7 8", 3, constants=(2,), batch_dims=_INTEGER_0),
    "GatherElements": _rule("6", 2, axis=(_integer, None)),
    "GatherND": _rule("8", 2, batch_dims=_INTEGER_0),
    "ScatterUpdate": _rule("3", 4),
    "ScatterElementsUpdate": _rule(
        "3 12",
        4,
        reduction=(Words("none", "sum", "prod", "min", "max", "mean"), "none"),
        use_init_val=(_flag, "true"),
    ),
    "ScatterNDUpdate": _rule(
        "3 4 15", 3, reduction=(Words("none", "sum", "sub", "prod", "min", "max"), "none")
    ),
    "TopK": _rule(
        "1 3 11",
        2,
        axis=(_integer, None),
        mode=(Words("max", "min"), None),
        sort=(Words("value", "index", "none"), None),
        stable=_KEEP,
        index_element_type=(_ELEMENT, "i32"),
    ),
    "NonZero": _rule("3", 1, output_type=(_ELEMENT, "i64")),
    "OneHot": _rule("1", 4, axis=(_integer, None)),
    "Range": _rule("4", 3, output_type=(_ELEMENT, None)),
    "ScaledDotProductAttention": _rule("13", 3, 5, fixed=3, causal=(_flag, "false")),
    "GroupQueryAttention": LayerRule(
        frozenset({EXTENSION}),
        (7, 16),
        7,
        {
            "num_heads": _NUMBER,
            "kv_num_heads": _NUMBER,
            "scale": (_float, "0"),
            "do_rotary": _KEEP,
            "rotary_interleaved": _KEEP,
            "local_window_size": (_integer, "-1"),
            "causal": (_flag, "true"),
            "kv_cache_bit_width": _INTEGER_0,
            "sliding_window_cache": _KEEP,
            "smooth_softmax": _KEEP,
            "k_quant_type": (Words("NONE"), "NONE"),
            "v_quant_type": (Words("NONE"), "NONE"),
        },
    ),
}
"""The layers that are understood, besides Parameter, Const, Result, ReadValue and Assign."""


_SPELLED_OTHERWISE = {
    "SoftMax": "Softmax",
    "SoftPlus": "Softplus",
    "ReLU": "Relu",
    "PReLU": "PRelu",
}
"""Layers whose type in files differs from the op's name in the documentation."""


_ANYWHERE = {"auto_broadcast": Words("numpy")}
"""What attributes of layers of any type have to be."""


def unsupported_value(kind: str, data: Mapping[str, str]) -> str | None:
    """Tell which attribute of a layer has a value that is not understood, or None."""
    read = {name: (reader, default) for name, (reader, default) in RULES[kind].properties.items()}
    read |= {name: (words, None) for name, words in _ANYWHERE.items()}
    for name, (reader, default) in read.items():
        text = data.get(name, default)
        if isinstance(reader, Words) and text is not None and text not in reader:
            return f"of {text}" if reader is _ELEMENT else f"with {name} {text!r}"
    return None


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


_SPELLED_IN_FILES = {name: kind for kind, name in _SPELLED_OTHERWISE.items()}


def kind_of(op: OvOp) -> str:
    """Give the type that files have for an op; there need be no rule for it."""
    name = op.name.removeprefix("ov.")
    return _SPELLED_IN_FILES.get(name, name)


def newest_opset(kind: str) -> str:
    """Give the newest opset in which a layer means what we take it to mean."""
    return max(RULES[kind].opsets, key=lambda opset: (len(opset), opset))


def layer_kind(op: OvOp) -> str:
    """Give the type with opset that an op has in an IR, as people look it up: ``Gather-8``."""
    kind = kind_of(op)
    return f"{kind}-{newest_opset(kind).removeprefix('opset')}" if kind in RULES else kind


def attributes_of(op: OvOp) -> dict[str, str]:
    """Give the attributes of an op's layer: what ``build`` makes the op's properties of."""
    return {name: _text(op.properties[name]) for name in RULES[kind_of(op)].properties}


def _text(attribute: Attribute) -> str:
    match attribute:
        case StringAttr():
            return attribute.data
        case FloatAttr():
            return repr(attribute.value.data)
        case IntegerAttr():
            number = attribute.value.data
            # True of one bit is -1 or 1, as one sees it.
            return str(number) if attribute.type != i1 else ("true" if number else "false")
        case DenseArrayBase():
            numbers = cast(DenseArrayBase[IntegerType], attribute)
            return ", ".join(str(number) for number in numbers.get_values())
        case _:
            raise TypeError(f"no layer has an attribute like {attribute}")
