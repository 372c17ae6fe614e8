"""Profiling information of requests, compared to the real OpenVINO."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from tests.oracle.real_npuw import EXACTLY, ON_CPU

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.testing.check_device import ROWS, WIDTH, weights

pytestmark = pytest.mark.oracle

X = np.ones((ROWS, WIDTH), np.float32)
FIELDS = ("node_name", "node_type", "exec_type", "status", "real_time", "cpu_time")


def product() -> Model:
    model, (x,) = Model.build([("x", tensor("f32", (ROWS, WIDTH)))])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.matmul(x, g.constant(weights()), False, name="product"))])
    return model


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profiled") / "model.xml"
    write_ir(product(), path)
    return path


@pytest.fixture(scope="module")
def told(static: Path) -> tuple[Sequence[Any], Sequence[Any]]:
    """Nodes of the real OpenVINO, and of this stack, for one model."""
    requests = [
        core.compile_model(static, name, {"PERF_COUNT": "YES"}).create_infer_request()
        for core, name in ((openvino.Core(), "CPU"), (Core(), "NPU"))
    ]
    for request in requests:
        request.infer({"x": X})
        assert len(request.get_profiling_info()) == len(request.profiling_info)
    real, ours = (request.profiling_info for request in requests)
    return real, ours


def test_a_node_has_the_fields_of_the_real_one(told) -> None:
    real, ours = told
    for node in (*real, *ours):
        values = [getattr(node, field) for field in FIELDS]
        kinds = [type(value) for value in values if not hasattr(value, "name")]
        assert kinds == [str, str, str, timedelta, timedelta]


def test_a_status_has_the_names_of_the_real_one(told) -> None:
    _, ours = told
    real = openvino.ProfilingInfo.Status.__members__
    found = type(ours[0]).Status.__members__
    assert {name: status.value for name, status in found.items()} == {
        name: int(status) for name, status in real.items()
    }


def test_a_matmul_has_the_same_name_and_status(told) -> None:
    for nodes in told:
        (product,) = (node for node in nodes if node.node_name == "product")
        assert product.status.name == "EXECUTED"


def test_submodels_are_named_like_the_real_npuws(static) -> None:
    through = {"NPU_USE_NPUW": "YES", "NPUW_ONLINE_PIPELINE": "NONE", "PERF_COUNT": True}
    requests = [
        openvino.Core().compile_model(static, "NPU", {**through, "NPUW_DEVICES": "CPU"}),
        Core().compile_model(static, "NPU", through),
    ]
    for compiled in requests:
        request = compiled.create_infer_request()
        request.infer({"x": X})
        assert "subgraph0: product" in {node.node_name for node in request.profiling_info}


def test_the_real_npuw_reports_no_nodes_of_language_models(demo_ir) -> None:
    """Node names of this stack should follow if NPUW adds some."""
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    config = {**ON_CPU, **EXACTLY, **lengths, "PERF_COUNT": True}
    request = openvino.Core().compile_model(demo_ir, "NPU", config).create_infer_request()
    ids = np.array([[1, 2, 3]])
    mask, positions = np.ones_like(ids), np.arange(3)[None]
    beam = np.zeros(1, np.int32)
    request.infer(
        {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "beam_idx": beam}
    )
    assert request.profiling_info == []
