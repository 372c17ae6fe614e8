"""Matmuls whose activations cannot be 8-bit integers: the pass rejects the model."""

from __future__ import annotations

import re

import pytest

from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.passes.quantize_activations import QuantizeActivations
from compiler_layer.pipeline import Options, run_passes

EIGHT = [
    "%w = ov.Constant #ov.inline<i8 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<2x4xi8>",
    "%s = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<2x1xf32>",
    "%y = npu.matmul(%x, %w) scales %s {transpose_a = false, transpose_b = true} : "
    "(tensor<3x4xf32>, tensor<2x4xi8>) scales tensor<2x1xf32> -> tensor<3x2xf32>",
]

FOUR = [line.replace("i8", "i4") for line in EIGHT]

GROUPS = [
    line.replace("[0.5, 0.25]", "[0.5, 0.25, 1.0, 2.0]").replace("tensor<2x1x", "tensor<2x2x")
    for line in EIGHT
]

COLUMNS = [
    "%w = ov.Constant #ov.inline<i8 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<4x2xi8>",
    "%s = ov.Constant #ov.inline<f32 [0.5, 0.25]> : tensor<1x2xf32>",
    "%d = ov.Dequantize(%w, %s) : (tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<4x2xf32>",
    "%y = npu.matmul(%x, %d) {transpose_a = false, transpose_b = false} : "
    "(tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>",
]

FLOATS = [
    "%w = ov.Constant #ov.inline<f16 [1, 2, 3, 4, 5, 6, 7, 8]> : tensor<2x4xf16>",
    "%y = npu.matmul(%x, %w) {transpose_a = false, transpose_b = true} : "
    "(tensor<3x4xf32>, tensor<2x4xf16>) -> tensor<3x2xf32>",
]

PRODUCTS = [
    "%y = npu.matmul(%x, %x) {transpose_a = false, transpose_b = true} : "
    "(tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>"
]


def rewritten(*matmuls: list[str]) -> str:
    """Run the pass on a model of matmuls of the same input; return its text."""
    lines = [
        re.sub(r"%([a-wy-z])\b", rf"%\g<1>{number}", line)
        for number, matmul in enumerate(matmuls)
        for line in matmul
    ]
    last = lines[-1].rpartition("-> ")[2]
    text = "\n".join(
        [
            'func.func @main(%x: tensor<3x4xf32> {ov.names = "x"}) -> '
            f'({last} {{ov.names = "y"}}) {{',
            *lines,
            f"func.return %y{len(matmuls) - 1} : {last}",
            "}",
        ]
    )
    model = Model.parse(text)
    run_passes(model, [QuantizeActivations()], Options())
    return model.text()


@pytest.mark.parametrize(
    ("matmuls", "says"),
    [
        ([FOUR], "; some have weights of type i4; "),
        ([EIGHT, FOUR, FOUR], "; some have weights of type i4; "),
        ([EIGHT, FOUR, GROUPS], "; some have weights of type i4, several scales per column; "),
        ([COLUMNS, EIGHT], "; some have weights that are not stored as rows [N, K]; "),
        ([FLOATS, PRODUCTS], "; some have weights of type f16; "),
        ([FLOATS, FOUR], "; some have weights of type i4; "),
    ],
)
def test_weights_that_exclude_integers_are_refused_with_a_remedy(
    matmuls: list[list[str]], says: str
) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        rewritten(*matmuls)
    message = str(caught.value)
    assert message.startswith("DYNAMIC_QUANTIZATION_GROUP_SIZE: ")
    assert says in message
    assert message.endswith("or export the model with --weight-format int8")


@pytest.mark.parametrize(("matmuls", "count"), [([EIGHT, FLOATS], 1), ([PRODUCTS], 0), ([], 0)])
def test_matmuls_of_floats_beside_others_and_of_activations_stay(
    matmuls: list[list[str]], count: int
) -> None:
    text = rewritten(*matmuls, PRODUCTS)
    assert text.count(" rows %") == count
    assert text.count("npu.matmul(") == len(matmuls) + 1
