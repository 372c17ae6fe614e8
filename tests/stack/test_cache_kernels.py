"""Kernels that the native engine chooses for models with an 8-bit cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import ask

from driver_layer.engines.native.dpu import MatmulKernel, MatmulProblem, choose
from driver_layer.engines.native.jit.host import Host, Isa, native_isa
from driver_layer.engines.native.lower import dpu as lower_dpu
from npuw_layer import Core

pytestmark = pytest.mark.skipif(native_isa() < Isa.AVX2, reason="this machine has no vectors")

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
    "KV_CACHE_PRECISION": "i8",
}
WAYS: dict[str, dict[str, Any]] = {
    "chunks": {},
    "whole prompts": {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "pyramid attention": {"NPUW_LLM_PREFILL_ATTENTION_HINT": "PYRAMID"},
    "transposed values": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES", "NPUW_LLM_KV_SWITCHOVER": "COPY"},
    "blocks": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "slots": {"NPUW_LLM_BATCH_SLOTS": "2"},
}


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> dict[MatmulProblem, str]:
    """Problems that the native engine solves, with the keys of their kernels."""
    found: dict[MatmulProblem, str] = {}

    def noted(problem: MatmulProblem, host: Host) -> MatmulKernel:
        kernel = choose(problem, host)
        found[problem] = kernel.spec.key
        return kernel

    monkeypatch.setattr(lower_dpu, "choose", noted)
    return found


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
def test_no_kernel_sums_the_rows_of_an_8_bit_cache_one_by_one(
    demo: Path, chosen: dict[MatmulProblem, str], way: str
) -> None:
    """Each row of V has a scale; as a group of its own, it would take as long as many rows."""
    ids = np.arange(3, 63)[None]
    request = Core().compile_model(demo, "NPU", SMALL | WAYS[way]).create_infer_request()
    ask(request, ids)
    ask(request, ids[:, :1], ids.size)
    assert not [key for key in chosen.values() if "generic" in key]
    assert not [problem for problem in chosen if problem.group]
    rows = {problem.rows for problem in chosen if problem.common_scales}
    assert min(rows) <= 4 < max(rows)
