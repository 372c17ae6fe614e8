"""Table of the supported layers of an IR.

A row lists the opsets with the same meaning, and the attributes that become properties; the op's
definition has the inputs.
"""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.dialects.ov.interpolate import (
    COORDINATE_TRANSFORMATION_MODES,
    NEAREST,
    NEAREST_MODES,
)
from compiler_layer.dialects.ov.paged_attention import MOST_OTHERS
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

_INTEGER_0 = (integer, "0")
_NUMBER = (integer, None)
_NUMBERS = (integers, None)


_OF_FILTERS = dict.fromkeys(("strides", "pads_begin", "pads_end", "dilations"), _NUMBERS)
"""Attributes of convolutions and transposed convolutions."""

_PADS = OneOf("explicit", "same_upper", "same_lower", "valid")
_SLIDING = rule("1", (), **_OF_FILTERS, auto_pad=(_PADS, "explicit"))

_POOLED = {
    **dict.fromkeys(("kernel", "strides", "pads_begin", "pads_end"), _NUMBERS),
    "rounding_type": (OneOf("floor"), "floor"),
    "auto_pad": (OneOf("explicit", "valid"), "explicit"),
}
"""Attributes of pooling."""

_SCATTERED = rule(
    "1",
    (),
    **_OF_FILTERS,
    auto_pad=(OneOf("explicit"), "explicit"),
    output_padding=(integers, ""),
)

_PLAIN = (
    *("Sqrt", "Exp", "Log", "Sin", "Cos", "Atan", "Tanh", "Sigmoid", "Negative", "Abs", "Sign"),
    *("Floor", "Ceiling", "ReLU", "Erf", "LogicalNot"),
    *("Add", "Subtract", "Multiply", "Divide", "Power", "Minimum", "Maximum", "Mod", "FloorMod"),
    *("LogicalAnd", "LogicalOr", "Equal", "NotEqual", "Less", "LessEqual"),
    *("Greater", "GreaterEqual", "SquaredDifference", "PReLU", "Select", "ConvertLike", "Tile"),
)
"""Layers without attributes, of the first opset."""

_REDUCTIONS = (
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceLogicalAnd", "ReduceLogicalOr"),
)
_STRIDED_MASKS = {
    name: (integers, "")
    for name in ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
}

RULES: dict[str, LayerRule] = {
    **dict.fromkeys(_PLAIN, rule("1")),
    "LogicalXor": rule("1 2"),
    **dict.fromkeys(_REDUCTIONS, rule("1", constants=(1,), keep_dims=_KEEP)),
    **dict.fromkeys(("ReduceL1", "ReduceL2"), rule("4", constants=(1,), keep_dims=_KEEP)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), rule("13")),
    **dict.fromkeys(("BitwiseLeftShift", "BitwiseRightShift"), rule("15")),
    "Round": rule("5", mode=(OneOf("half_to_even", "half_away_from_zero"), "half_to_even")),
    "Gelu": rule("2 7", approximation_mode=(OneOf("ERF", "TANH"), "ERF")),
    "ErfInv": rule("17"),
    **dict.fromkeys(("Swish", "SoftPlus", "HSwish"), rule("4")),
    "Clamp": rule("1", min=(number, None), max=(number, None)),
    "FakeQuantize": rule("1", levels=(integer, None)),
    "FakeConvert": rule("13", destination_type=(OneOf(*sorted(FLOAT8)), "f8e4m3")),
    "Convert": rule("1", destination_type=(ELEMENT, None)),
    "MatMul": rule("1", transpose_a=(flag, "false"), transpose_b=(flag, "false")),
    "Convolution": _SLIDING,
    "GroupConvolution": _SLIDING,
    "ConvolutionBackpropData": _SCATTERED,
    "GroupConvolutionBackpropData": _SCATTERED,
    "AvgPool": rule("1 14", (), **_POOLED, **{"exclude-pad": (flag, None)}),
    "MaxPool": rule(
        "8 14",
        (),
        **_POOLED,
        dilations=_NUMBERS,
        index_element_type=(ELEMENT, "i64"),
        axis=_INTEGER_0,
    ),
    "LSTMSequence": rule(
        "5",
        hidden_size=_NUMBER,
        direction=(OneOf("forward", "reverse", "bidirectional"), None),
        activations=(OneOf("sigmoid,tanh,tanh"), "sigmoid,tanh,tanh"),
        activations_alpha=(OneOf(""), ""),
        activations_beta=(OneOf(""), ""),
        clip=(OneOf("0"), "0"),
    ),
    "Interpolate": rule(
        "11",
        constants=(2,),
        mode=(OneOf(NEAREST, "linear", "linear_onnx"), None),
        shape_calculation_mode=(OneOf("scales", "sizes"), None),
        coordinate_transformation_mode=(OneOf(*COORDINATE_TRANSFORMATION_MODES), "half_pixel"),
        nearest_mode=(OneOf(*NEAREST_MODES), "round_prefer_floor"),
        antialias=(OneOf("false"), "false"),
        pads_begin=(integers, ""),
        pads_end=(integers, ""),
    ),
    "STFT": rule("15", transpose_frames=_KEEP),
    "ISTFT": rule("16", center=_KEEP, normalized=(OneOf("false"), "false")),
    "RandomUniform": rule(
        "8",
        output_type=(OneOf("f32"), None),
        global_seed=_INTEGER_0,
        op_seed=_INTEGER_0,
        alignment=(OneOf("tensorflow"), "tensorflow"),
    ),
    "Roll": rule("7"),
    "SoftMax": rule("1 8", axis=(integer, "1")),
    "LogSoftmax": rule("5", axis=(integer, "1")),
    "CumSum": rule("3", exclusive=_KEEP, reverse=_KEEP),
    "MVN": rule(
        "6",
        normalize_variance=(flag, "true"),
        eps=(number, None),
        eps_mode=(OneOf("inside_sqrt", "outside_sqrt"), "inside_sqrt"),
    ),
    "GroupNormalization": rule("12", num_groups=(integer, None), epsilon=(number, None)),
    "ShapeOf": rule("1 3", output_type=(ELEMENT, "i64")),
    "Reshape": rule("1", special_zero=(flag, None)),
    "Transpose": rule("1", constants=(1,)),
    "Unsqueeze": rule("1", constants=(1,)),
    "Squeeze": rule("1 15", constants=(1,)),
    "Broadcast": rule("1 3", mode=(OneOf("numpy", "bidirectional"), "numpy")),
    "Pad": rule("1 12", pad_mode=(OneOf("constant", "edge", "reflect", "symmetric"), None)),
    "Concat": replace(rule("1", axis=(integer, None)), variadic=(1, 1 << 16)),
    "Slice": rule("8"),
    "StridedSlice": rule("1", (1, 2, 3), **_STRIDED_MASKS),
    "Split": rule("1", constants=(1,), num_splits=(integer, None)),
    "VariadicSplit": rule("1", constants=(1,)),
    "Gather": rule("1 7 8", constants=(2,), batch_dims=_INTEGER_0),
    "GatherElements": rule("6", axis=(integer, None)),
    "GatherND": rule("8", batch_dims=_INTEGER_0),
    "ScatterUpdate": rule("3"),
    "ScatterElementsUpdate": rule(
        "3 12",
        reduction=(OneOf("none", "sum", "prod", "min", "max", "mean"), "none"),
        use_init_val=(flag, "true"),
    ),
    "ScatterNDUpdate": rule(
        "3 4 15", reduction=(OneOf("none", "sum", "sub", "prod", "min", "max"), "none")
    ),
    "TopK": rule(
        "1 3 11",
        axis=(integer, None),
        mode=(OneOf("max", "min"), None),
        sort=(OneOf("value", "index", "none"), None),
        stable=_KEEP,
        index_element_type=(ELEMENT, "i32"),
    ),
    "NonZero": rule("3", output_type=(ELEMENT, "i64")),
    "OneHot": rule("1", axis=(integer, None)),
    "Range": rule("4", output_type=(ELEMENT, None)),
    "ScaledDotProductAttention": replace(rule("13", causal=_KEEP), variadic=(0, 2)),
    "GroupQueryAttention": LayerRule(
        frozenset({EXTENSION}),
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
        variadic=(0, 9),
    ),
    "PagedAttentionExtension": LayerRule(
        frozenset({EXTENSION}), {"write_kv_cache": (flag, "true")}, variadic=(0, MOST_OTHERS)
    ),
}
"""Supported layers besides Parameter, Const, Result, ReadValue and Assign."""
