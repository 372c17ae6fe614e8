"""Names of the layers that the device can run, and models that are damaged."""

from __future__ import annotations

import contextlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiler.in_driver.caller import Dense, serialized

from compiler_layer.in_driver.compiler import DriverCompiler
from compiler_layer.in_driver.serialized_model import read_serialized_model, write_serialized_model
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import GraphCompilerError

ALL = {"x", "weights", "product", "relu", "narrow", "Result_5"}


def query(model: bytes) -> set[str]:
    return {*DriverCompiler().query(memoryview(model), "", PLATFORMS["4000"])}


@pytest.fixture
def model(dense: Dense) -> bytes:
    return serialized(dense.model(element="f16"))


def replaced(model: bytes, old: str, new: str) -> bytes:
    """Replace text of the XML, which must be there."""
    parts = read_serialized_model(memoryview(model))
    xml, count = re.subn(old, new, parts.xml.decode())
    assert count
    return write_serialized_model(parts.version, xml.encode(), bytes(parts.weights))


def test_all_layers_of_a_supported_model(model: bytes) -> None:
    assert query(model) == ALL


def test_all_but_a_layer_of_unknown_type(model: bytes) -> None:
    assert query(replaced(model, 'type="ReLU"', 'type="Sorcery"')) == ALL - {"relu"}


def test_all_but_a_layer_that_no_task_computes(dense: Dense) -> None:
    assert query(serialized(dense.model(element="f64"))) == ALL - {"narrow"}


def test_neither_readers_of_types_that_do_not_exist_here(model: bytes) -> None:
    changed = replaced(model, 'type="ReLU"', 'type="Sorcery"')
    other = replaced(changed, r'(<output>\s*<port id="1" precision=)"FP32"', r'\1"STRING"')
    assert query(other) == ALL - {"relu", "narrow"}


def test_a_dynamic_model_is_rejected(dense: Dense) -> None:
    with pytest.raises(GraphCompilerError, match="dynamic batch"):
        query(serialized(dense.model(batch=-1)))


@given(st.data())
def test_any_attribute_is_rejected_or_read(data: st.DataObject) -> None:
    weights = np.ones((4, 8), np.float32)
    parts = read_serialized_model(memoryview(Dense(weights).serialized()))
    values = list(re.finditer(rb'"([^"]*)"', parts.xml))
    place = data.draw(st.sampled_from(values))
    other = data.draw(st.sampled_from([b"", b"-1", b"9" * 30, b"f64", b"Result", b"Const", b"1,2"]))
    xml = parts.xml[: place.start(1)] + other + parts.xml[place.end(1) :]
    changed = write_serialized_model(parts.version, xml, bytes(parts.weights))
    for call in (DriverCompiler().compile, DriverCompiler().query):
        with contextlib.suppress(GraphCompilerError):
            call(memoryview(changed), "", PLATFORMS["4000"])
