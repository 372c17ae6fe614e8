"""No op that an IR can have is left out of the cases that are drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compiler_layer.dialects.ov import OPS
from compiler_layer.frontends.openvino_ir.ops import kind_of
from compiler_layer.frontends.openvino_ir.rules import RULES

HERE = Path(__file__).parent

ELSEWHERE = ("GroupQueryAttention", "PagedAttentionExtension")
"""OpenVINO makes no ops of these, and reads none of a file (of ONNX the first): see
test_decompose_gqa and test_paged_attention."""


def test_every_layer_that_is_understood_is_drawn_in_one_place(
    load_module: Callable[[Path], Any],
) -> None:
    tables = [load_module(path).CASES for path in HERE.glob("test_random_*.py")]
    drawn = [*ELSEWHERE, *(kind for table in tables for kind in table)]
    assert sorted(drawn) == sorted(RULES)


def test_what_is_no_layer_is_made_by_passes_or_tested_with_whole_models() -> None:
    made, with_models = {"RMS", "RoPE", "Dequantize"}, {"Constant", "ReadValue", "Assign"}
    assert {kind_of(op) for op in OPS.values()} - set(RULES) == made | with_models
