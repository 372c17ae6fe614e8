"""Completeness of the drawn cases: they cover every op that an IR can contain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compiler_layer.dialects.ov import OPS
from compiler_layer.frontends.openvino_ir.ops import kind_of
from compiler_layer.frontends.openvino_ir.rules import RULES

HERE = Path(__file__).parent

ELSEWHERE = ("ConvertLike", "GroupQueryAttention", "PagedAttentionExtension")
"""A layer that is read as another op, see test_convert_like; ops that OpenVINO's API cannot build,
or its reader cannot read (ONNX Runtime's), see test_decompose_gqa and test_paged_attention."""


def test_every_supported_layer_is_drawn_in_one_place(
    load_module: Callable[[Path], Any],
) -> None:
    tables = [load_module(path).CASES for path in HERE.glob("test_random_*.py")]
    drawn = [*ELSEWHERE, *(kind for table in tables for kind in table)]
    assert sorted(drawn) == sorted(RULES)


def test_ops_that_are_not_layers_come_from_passes_or_complete_models() -> None:
    made, with_models = {"RMS", "RoPE", "Dequantize"}, {"Constant", "ReadValue", "Assign"}
    assert {kind_of(op) for op in OPS.values()} - set(RULES) == made | with_models
