"""Table of the supported layers of an IR.

A row lists the opsets with the same meaning, the number of fixed inputs (the others form one
variadic or optional operand), and the attributes that become properties.
"""

from __future__ import annotations

from compiler_layer.dialects.ov.paged_attention import MOST_OPERANDS
from compiler_layer.elements import FLOAT8, NUMPY
from compiler_layer.frontends.openvino_ir.layer_rule import (
    LayerRule,
    OneOf,
    flag,
    integer,
    integers,
    number,
    rule,
)

EXTENSION = "extension"
"""Opset name of OpenVINO's conversions of other frameworks' custom ops."""

ELEMENT = OneOf(*NUMPY)
_KEEP = (flag, "false")
_MANY = 1 << 16

_INTEGER_0 = (integer, "0")
_NUMBER = (integer, None)
_NUMBERS = (integers, None)


_OF_FILTERS = dict.fromkeys(("strides", "pads_begin", "pads_end", "dilations"), _NUMBERS)
"""Attributes of convolutions and transposed convolutions."""

_PADS = OneOf("explicit", "same_upper", "same_lower", "valid")
_SLIDING = rule("1", 2, 2, None, (), **_OF_FILTERS, auto_pad=(_PADS, "explicit"))

_POOLED = {
    **dict.fromkeys(("kernel", "strides", "pads_begin", "pads_end"), _NUMBERS),
    "rounding_type": (OneOf("floor"), "floor"),
    "auto_pad": (OneOf("explicit", "valid"), "explicit"),
}
"""Attributes of pooling."""

_SCATTERED = rule(
    "1",
    2,
    2,
    None,
    (),
    **_OF_FILTERS,
    auto_pad=(OneOf("explicit"), "explicit"),
    output_padding=(integers, ""),
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
    name: (integers, "")
    for name in ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
}

RULES: dict[str, LayerRule] = {
    **{name: rule("1", 1) for name in _UNARY},
    **{name: rule("1", 2) for name in (*_BINARY, "SquaredDifference")},
    "LogicalXor": rule("1 2", 2),
    **{name: rule("1", 2, constants=(1,), keep_dims=_KEEP) for name in _REDUCTIONS},
    **{name: rule("4", 2, constants=(1,), keep_dims=_KEEP) for name in ("ReduceL1", "ReduceL2")},
    **{name: rule("13", 2) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{name: rule("15", 2) for name in ("BitwiseLeftShift", "BitwiseRightShift")},
    "BitwiseNot": rule("13", 1),
    "Round": rule("5", 1, mode=(OneOf("half_to_even", "half_away_from_zero"), "half_to_even")),
    "PReLU": rule("1", 2),
    "Swish": rule("4", 1, 2, fixed=1),
    "Gelu": rule("2 7", 1, approximation_mode=(OneOf("ERF", "TANH"), "ERF")),
    "ErfInv": rule("17", 1),
    "SoftPlus": rule("4", 1),
    "HSwish": rule("4", 1),
    "Clamp": rule("1", 1, min=(number, None), max=(number, None)),
    "FakeQuantize": rule("1", 5, levels=(integer, None)),
    "FakeConvert": rule("13", 2, 3, fixed=2, destination_type=(OneOf(*sorted(FLOAT8)), "f8e4m3")),
    "Select": rule("1", 3),
    "Convert": rule("1", 1, destination_type=(ELEMENT, None)),
    "ConvertLike": rule("1", 2),
    "MatMul": rule("1", 2, transpose_a=(flag, "false"), transpose_b=(flag, "false")),
    "Convolution": _SLIDING,
    "GroupConvolution": _SLIDING,
    "ConvolutionBackpropData": _SCATTERED,
    "GroupConvolutionBackpropData": _SCATTERED,
    "AvgPool": rule("1 14", 1, 1, None, (), **_POOLED, **{"exclude-pad": (flag, None)}),
    "MaxPool": rule(
        "8 14",
        1,
        1,
        None,
        (),
        **_POOLED,
        dilations=_NUMBERS,
        index_element_type=(ELEMENT, "i64"),
        axis=_INTEGER_0,
    ),
    "LSTMSequence": rule(
        "5",
        7,
        hidden_size=_NUMBER,
        direction=(OneOf("forward", "reverse", "bidirectional"), None),
        activations=(OneOf("sigmoid,tanh,tanh"), "sigmoid,tanh,tanh"),
        activations_alpha=(OneOf(""), ""),
        activations_beta=(OneOf(""), ""),
        clip=(OneOf("0"), "0"),
    ),
    "Interpolate": rule(
        "11",
        3,
        constants=(2,),
        mode=(OneOf("nearest", "linear"), None),
        shape_calculation_mode=(OneOf("scales"), None),
        coordinate_transformation_mode=(
            OneOf("half_pixel", "pytorch_half_pixel", "asymmetric"),
            "half_pixel",
        ),
        nearest_mode=(
            OneOf("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
            "round_prefer_floor",
        ),
        antialias=(OneOf("false"), "false"),
        pads_begin=(integers, ""),
        pads_end=(integers, ""),
    ),
    "STFT": rule("15", 4, transpose_frames=_KEEP),
    "ISTFT": rule("16", 4, center=_KEEP, normalized=(OneOf("false"), "false")),
    "RandomUniform": rule(
        "8",
        3,
        output_type=(OneOf("f32"), None),
        global_seed=_INTEGER_0,
        op_seed=_INTEGER_0,
        alignment=(OneOf("tensorflow"), "tensorflow"),
    ),
    "Roll": rule("7", 3),
    "SoftMax": rule("1 8", 1, axis=(integer, "1")),
    "LogSoftmax": rule("5", 1, axis=(integer, "1")),
    "CumSum": rule("3", 2, exclusive=_KEEP, reverse=_KEEP),
    "MVN": rule(
        "6",
        2,
        normalize_variance=(flag, "true"),
        eps=(number, None),
        eps_mode=(OneOf("inside_sqrt", "outside_sqrt"), "inside_sqrt"),
    ),
    "GroupNormalization": rule("12", 3, num_groups=(integer, None), epsilon=(number, None)),
    "ShapeOf": rule("1 3", 1, output_type=(ELEMENT, "i64")),
    "Reshape": rule("1", 2, special_zero=(flag, None)),
    "Transpose": rule("1", 2, constants=(1,)),
    "Unsqueeze": rule("1", 2, constants=(1,)),
    "Squeeze": rule("1 15", 1, 2, fixed=1, constants=(1,)),
    "Broadcast": rule("1 3", 2, mode=(OneOf("numpy", "bidirectional"), "numpy")),
    "Tile": rule("1", 2),
    "Pad": rule(
        "1 12", 3, 4, fixed=3, pad_mode=(OneOf("constant", "edge", "reflect", "symmetric"), None)
    ),
    "Concat": rule("1", 1, _MANY, fixed=0, axis=(integer, None)),
    "Slice": rule("8", 4, 5, fixed=4),
    "StridedSlice": rule("1", 3, 4, fixed=3, constants=(1, 2, 3), **_STRIDED_MASKS),
    "Split": rule("1", 2, constants=(1,), num_splits=(integer, None)),
    "VariadicSplit": rule("1", 3, constants=(1,)),
    "Gather": rule("1 7 8", 3, constants=(2,), batch_dims=_INTEGER_0),
    "GatherElements": rule("6", 2, axis=(integer, None)),
    "GatherND": rule("8", 2, batch_dims=_INTEGER_0),
    "ScatterUpdate": rule("3", 4),
    "ScatterElementsUpdate": rule(
        "3 12",
        4,
        reduction=(OneOf("none", "sum", "prod", "min", "max", "mean"), "none"),
        use_init_val=(flag, "true"),
    ),
    "ScatterNDUpdate": rule(
        "3 4 15", 3, reduction=(OneOf("none", "sum", "sub", "prod", "min", "max"), "none")
    ),
    "TopK": rule(
        "1 3 11",
        2,
        axis=(integer, None),
        mode=(OneOf("max", "min"), None),
        sort=(OneOf("value", "index", "none"), None),
        stable=_KEEP,
        index_element_type=(ELEMENT, "i32"),
    ),
    "NonZero": rule("3", 1, output_type=(ELEMENT, "i64")),
    "OneHot": rule("1", 4, axis=(integer, None)),
    "Range": rule("4", 3, output_type=(ELEMENT, None)),
    "ScaledDotProductAttention": rule("13", 3, 5, fixed=3, causal=(flag, "false")),
    "GroupQueryAttention": LayerRule(
        frozenset({EXTENSION}),
        (7, 16),
        7,
        {
            "num_heads": _NUMBER,
            "kv_num_heads": _NUMBER,
            "scale": (number, "0"),
            "do_rotary": _KEEP,
            "rotary_interleaved": _KEEP,
            "local_window_size": (integer, "-1"),
            "causal": (flag, "true"),
            "kv_cache_bit_width": _INTEGER_0,
            "sliding_window_cache": _KEEP,
            "smooth_softmax": _KEEP,
            "k_quant_type": (OneOf("NONE"), "NONE"),
            "v_quant_type": (OneOf("NONE"), "NONE"),
        },
    ),
    "PagedAttentionExtension": LayerRule(
        frozenset({EXTENSION}), (13, MOST_OPERANDS), 13, {"write_kv_cache": (flag, "true")}
    ),
}
"""Supported layers besides Parameter, Const, Result, ReadValue and Assign."""
