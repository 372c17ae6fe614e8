"""Compressed rotary frequencies compared to the real OpenVINO, which decompresses them in f32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from tests.npuw.compressed_angles import compressed_angles
from tests.oracle.real_npuw import EXACT

from compiler_layer.pipeline import Options, lower_graph
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer.llm.graph.rope_cache import cache_rope

pytestmark = pytest.mark.oracle

ROWS = 4000


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize(("precision", "bound"), [("f32", 1e-5), ("f16", 1e-3)])
def test_rotary_embeddings_of_late_positions_equal_openvinos(
    tmp_path: Path, table: bool, precision: str, bound: float
) -> None:
    model = compressed_angles()
    write_ir(model, tmp_path / "model.xml")
    positions = np.arange(ROWS)[None]
    real = ov.Core().compile_model(tmp_path / "model.xml", "CPU", EXACT)
    expected = real([positions])["cos"]
    if table:
        cache_rope(model, ROWS)
    model.set_input_shapes({"position_ids": positions.shape})
    lower_graph(model, Options(precision))
    found = Interpreter(model).run({"position_ids": positions})["cos"]
    np.testing.assert_allclose(found, expected, atol=bound)
