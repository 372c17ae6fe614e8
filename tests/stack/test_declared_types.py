"""Declared element types of ports: a contract, as callers allocate by them."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.elements import NUMPY
from compiler_layer.model import Model
from compiler_layer.tools.npuc import main as npuc
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from npuw_layer import Core

PARAMETERS = ("f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")
RESULTS = ("f32", "f16", "bf16", "i64", "i32", "i8", "u8")
NARROW = {"NPUW_DEVICES": "NPU", "NPU_USE_NPUW": "YES"}
models = st.lists(
    st.tuples(st.sampled_from(PARAMETERS), st.sampled_from(RESULTS), st.booleans()),
    min_size=1,
    max_size=3,
)
precisions = st.sampled_from(["f32", "f16", "bf16"])


def converting(ports: list[tuple[str, str, bool]]) -> Model:
    """Build a model that converts its parameters, some doubled, to other element types."""
    kinds = [(f"x{i}", tensor(element, (2, 8))) for i, (element, _, _) in enumerate(ports)]
    model, values = Model.build(kinds)
    g = GraphBuilder(model)
    outputs = []
    for i, (value, (_, element, doubled)) in enumerate(zip(values, ports, strict=True)):
        wide = g.convert(value, "f32")
        wide = g.op(elementwise.Add, wide, wide) if doubled else wide
        outputs.append((f"y{i}", g.convert(wide, element)))
    model.set_outputs(outputs)
    return model


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory):
    """Return a function that writes a model as IR into a separate folder."""
    root, numbers = tmp_path_factory.mktemp("types"), count()

    def write(model: Model) -> Path:
        folder = root / str(next(numbers))
        folder.mkdir()
        write_ir(model, folder / "model.xml")
        return folder / "model.xml"

    return write


@settings(max_examples=12, deadline=None)
@given(models, precisions)
def test_a_blob_of_npuc_has_the_types_of_the_model(written, ports, precision) -> None:
    path = written(converting(ports))
    blob = path.with_suffix(".blob")
    assert npuc(["compile", str(path), "--precision", precision, "-o", str(blob)]) == 0
    found = HostParsedInference(blob.read_bytes(), PLATFORMS["4000"]).metadata
    assert [each.element.name.lower() for each in found.inputs] == [
        element for element, _, _ in ports
    ]
    assert [each.element.name.lower() for each in found.outputs] == [
        element for _, element, _ in ports
    ]


@settings(max_examples=12, deadline=None)
@given(models, precisions, st.sampled_from(["YES", "NO"]))
def test_ports_and_tensors_have_the_types_of_the_model(written, ports, precision, npuw) -> None:
    """Models run by NPUW or on the NPU directly; compiled, or imported from the native blob."""
    options = {"INFERENCE_PRECISION_HINT": precision, "NPU_USE_NPUW": npuw}
    compiled = Core().compile_model(written(converting(ports)), "NPU", options)
    imported = Core().import_model(compiled.export_model(), "NPU")
    for model in (compiled, imported):
        assert [port.element_type for port in model.inputs] == [one for one, _, _ in ports]
        assert [port.element_type for port in model.outputs] == [one for _, one, _ in ports]
        request = model.create_infer_request()
        ones = {f"x{i}": np.ones((2, 8)).astype(NUMPY[one]) for i, (one, _, _) in enumerate(ports)}
        ones |= {
            f"x{i}": np.full((2, 8), 0x3F80, "<u2") for i, p in enumerate(ports) if p[0] == "bf16"
        }
        request.infer(ones)
        for i, (_, element, doubled) in enumerate(ports):
            found = request.get_tensor(f"y{i}").data
            assert found.dtype == NUMPY[element]
            expected = (0x4000 if doubled else 0x3F80) if element == "bf16" else 1 + doubled
            assert (found == expected).all()
