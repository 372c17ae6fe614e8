"""Experts whose tokens are not known, or meet one another, are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model, context
from compiler_layer.passes.dense_experts import DenseExperts

ROUTED = (Path(__file__).parent / "passes" / "dense_experts.mlir").read_text()

CHANGES = {
    "rows that meet": ("ov.Exp(%more)", "ov.Softmax(%more) {axis = 0 : i64}"),
    "results given to slots": ("ov.Reshape(%token, %upright)", "ov.Reshape(%slot, %upright)"),
    "weights of other slots": ("ov.Multiply(%token, %two)", "ov.Multiply(%token, %three)"),
    "results that replace others": ('reduction = "sum"', 'reduction = "none"'),
    "nothing to add to": ("use_init_val = true", "use_init_val = false"),
    "rows taken from columns": (
        "ov.Transpose(%hot, %turn) : (tensor<4x2x3xi64>, tensor<3xi64>) -> tensor<3x2x4xi64>",
        "ov.Reshape(%hot, %turned) {special_zero = false} : (tensor<4x2x3xi64>, tensor<3xi64>) -> "
        "tensor<3x2x4xi64>",
    ),
    "marks of another kind": (
        "%hot = ov.OneHot(%ids, %three, %one, %zero)",
        "%hot = ov.OneHot(%ids, %three, %one, %two)",
    ),
    "ids that may be twice": ("ov.OneHot(%ids,", "ov.OneHot(%same,"),
}


def densify(text: str) -> Model:
    model = Model.parse(text)
    DenseExperts().apply(context(), model.module)
    return model


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_sum_over_experts_is_refused(change: str) -> None:
    old, new = CHANGES[change]
    assert old in ROUTED
    extra = (
        "  %turned = ov.Constant #ov.inline<i64 [3, 2, 4]> : tensor<3xi64>\n"
        "  %same = ov.BitwiseAnd(%ids, %ids) : (tensor<4x2xi64>, tensor<4x2xi64>) -> "
        "tensor<4x2xi64>\n"
        "  %hot ="
    )
    text = ROUTED.replace(old, new).replace("  %hot =", extra)
    with pytest.raises(CompilerUsageError, match=r"ov\.NonZero.*depends on the data"):
        densify(text)


def test_what_experts_compute_may_be_changed() -> None:
    model = densify(ROUTED.replace("ov.Exp(%more)", "ov.Sin(%more)"))
    model.verify()
