"""Mixtures of experts with unknown routing or dependent tokens are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler_layer.errors import CompilerUsageError, UnsupportedModel
from compiler_layer.model import Model, context
from compiler_layer.passes.dense_experts import DenseExperts

ROUTED = (Path(__file__).parent / "dense_experts.mlir").read_text()

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
def test_a_graph_that_is_not_a_sum_over_experts_is_refused(change: str) -> None:
    old, new = CHANGES[change]
    assert old in ROUTED
    extra = (
        "  %turned = ov.Constant #ov.inline<i64 [3, 2, 4]> : tensor<3xi64>\n"
        "  %same = ov.BitwiseAnd(%ids, %ids) : (tensor<4x2xi64>, tensor<4x2xi64>) -> "
        "tensor<4x2xi64>\n"
        "  %hot ="
    )
    text = ROUTED.replace(old, new).replace("  %hot =", extra)
    with pytest.raises(UnsupportedModel, match=r"^mixture of experts at ov\.NonZero.*Mixtral"):
        densify(text)


COUNTS, EXPERT = "ov.ReduceSum(%ids, %zero)", "ov.MatMul(%rows, %a) {flags} : (ROWS, SQUARE)"

SORTED = f"""func.func @main(%x: tensor<4x2xf32> {{ov.names = "x"}},
    %p: tensor<4x3xf32> {{ov.names = "p"}}, %given: IDS {{ov.names = "given"}})
    -> (ROWS {{ov.names = "y"}}) {{
  %zero = ov.Constant #ov.inline<i64 [0]> : tensor<i64>
  %first = ov.Constant #ov.inline<i64 [0]> : ONE
  %single = ov.Constant #ov.inline<i64 [1]> : tensor<i64>
  %step = ov.Constant #ov.inline<i64 [1]> : ONE
  %w, %ids = ov.TopK(%p, %single) {{axis = -1 : i64, mode = "max", sort = "value",
    stable = false, index_element_type = "i64"}} : (tensor<4x3xf32>, tensor<i64>)
    -> (tensor<4x1xf32>, IDS)
  %count = {COUNTS} {{keep_dims = false}} : (IDS, tensor<i64>) -> ONE
  %rows = ov.Slice(%x, %first, %count, %step, %first) {{ov.name = "slice"}} :
    (tensor<4x2xf32>, ONE, ONE, ONE, ONE) -> ROWS
  %a = ov.Constant #ov.inline<f32 [1.0, -2.0, 0.5, 3.0]> : SQUARE
  %y = {EXPERT} -> ROWS
  func.return %y : ROWS
}}"""
"""GraniteMoE: tokens are sorted by expert, and each expert's rows are sliced by token counts."""

SHORT = {
    "ROWS": "tensor<?x2xf32>",
    "SQUARE": "tensor<2x2xf32>",
    "IDS": "tensor<4x1xi64>",
    "ONE": "tensor<1xi64>",
    "{flags}": "{transpose_a = false, transpose_b = true}",
}


def densify_sorted(*change: str) -> Model:
    text = SORTED.replace(*change) if change else SORTED
    for short, long in SHORT.items():
        text = text.replace(short, long)
    return densify(text)


def test_experts_with_rows_sliced_by_counts_are_named_as_a_mixture() -> None:
    says = r"^mixture of experts at ov\.Slice 'slice': its tokens are sorted.*--device CPU"
    with pytest.raises(UnsupportedModel, match=says):
        densify_sorted()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (COUNTS, "ov.ReduceSum(%given, %zero)"),
        (EXPERT, "ov.Exp(%rows) : (ROWS)"),
    ],
    ids=["no router", "no experts"],
)
def test_other_data_dependent_shapes_are_reported_as_such(old: str, new: str) -> None:
    says = r"^ov\.Slice 'slice': its shape depends on the data"
    with pytest.raises(CompilerUsageError, match=says):
        densify_sorted(old, new)


def test_experts_may_compute_any_row_wise_function() -> None:
    model = densify(ROUTED.replace("ov.Exp(%more)", "ov.Sin(%more)"))
    model.verify()
