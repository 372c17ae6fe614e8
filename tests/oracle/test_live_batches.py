"""Dynamic batch sizes compared to the real OpenVINO's CPU plugin, which supports them directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from tests.npuw.kinds.static.batches import EXACT, items, scorer

from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import BatchedCompiledModel, Core

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("batch", [-1, 5])
def test_batches_equal_openvinos(batch: int, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    write_ir(scorer(batch), path)
    theirs = ov.Core().compile_model(path, "CPU", EXACT)
    ours = Core().compile_model(path, "NPU", EXACT | {"NPU_BATCH_MODE": "PLUGIN"})
    assert isinstance(ours, BatchedCompiledModel)
    for real, port in zip(
        (*theirs.inputs, *theirs.outputs), (*ours.inputs, *ours.outputs), strict=True
    ):
        assert port.any_name in real.names
        dims = [-1 if dim.is_dynamic else dim.get_length() for dim in real.partial_shape]
        assert dims == list(port.partial_shape)
    one, other = theirs.create_infer_request(), ours.create_infer_request()
    for count in (1, 3, 5) if batch < 0 else (5,):
        inputs = items(count)
        one.infer(inputs)
        found = other.infer(inputs)
        for name in ("scores", "codes"):
            expected = one.get_tensor(name).data
            np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_batch_of_separate_tensors_equals_openvinos(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    write_ir(scorer(-1), path)
    ours = Core().compile_model(path, "NPU", EXACT).create_infer_request()
    theirs = ov.Core().compile_model(path, "CPU", EXACT).create_infer_request()
    inputs = items(3)
    theirs.infer(inputs)
    for name, values in inputs.items():
        ours.set_tensors(name, [ov.Tensor(one[None]) for one in values])
    expected = theirs.get_tensor("scores").data
    np.testing.assert_allclose(ours.infer()["scores"], expected, rtol=1e-5, atol=1e-5)
