"""Rows of a batch, compared to OpenVINO's CPU plugin and to the real NPUW, live."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_npuw import EXACT

from npuw_layer import Core

pytestmark = pytest.mark.oracle

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
PROMPT = [5, 9, 13, 7, 21]


def tell(request: Any, rows: Sequence[Sequence[int]], past: int, sources: Sequence[int]) -> Any:
    """Infer rows; return the last logits of each."""
    count = len(rows[0])
    request.infer(
        {
            "input_ids": np.array(rows, np.int64),
            "attention_mask": np.ones((len(rows), past + count), np.int64),
            "position_ids": np.tile(np.arange(past, past + count), (len(rows), 1)),
            "beam_idx": np.array(sources, np.int32),
        }
    )
    return request.get_tensor("logits").data[:, -1].copy()


def test_rows_have_openvinos_logits(demo_ir: Path) -> None:
    options = LENGTHS | {"INFERENCE_PRECISION_HINT": "f32"}
    ours = Core().compile_model(demo_ir, "NPU", options).create_infer_request()
    theirs = ov.Core().compile_model(demo_ir, "CPU", EXACT).create_infer_request()
    steps = [
        ([PROMPT], 0, [0]),
        ([[1], [2], [3]], 5, [0, 0, 0]),
        ([[4], [5], [6]], 6, [2, 0, 2]),
        ([[7], [8], [9], [10]], 7, [1, 1, 2, 0]),
        ([[11]], 8, [2]),
    ]
    for rows, past, sources in steps:
        found, expected = (tell(each, rows, past, sources) for each in (ours, theirs))
        assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_the_real_npuw_fails_on_rows(demo_ir: Path) -> None:
    """The failure damages memory, so a process of its own meets it."""
    program = """if True:
        import os, sys
        import openvino as ov
        from tests.oracle.test_live_rows import LENGTHS, PROMPT, tell
        from tests.oracle.real_npuw import EXACTLY, ON_CPU
        compiled = ov.Core().compile_model(sys.argv[1], "NPU", ON_CPU | EXACTLY | LENGTHS)
        request = compiled.create_infer_request()
        tell(request, [PROMPT], 0, [0])
        try:
            tell(request, [[1], [2]], 5, [0, 0])
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    """
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", program, str(demo_ir)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert "padded_shape[i] == position_shape[i]" in done.stdout, done.stderr
