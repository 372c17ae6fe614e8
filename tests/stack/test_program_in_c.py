"""A program without Python that compiles a model, and runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.compiler.in_driver.caller import Dense
from tests.driver.c_abi.cpp_program import MODEL, run_program

from driver_layer.c_abi.build import compiler, library


def test_a_program_without_python_compiles_a_model(tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("no C compiler")
    dense = Dense(np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32))
    y = run_program(library(), tmp_path, MODEL, dense.serialized(), dense.x.tobytes())
    found = np.frombuffer(y, np.float32)[: dense.expected.size].reshape(dense.expected.shape)
    assert np.allclose(found, dense.expected, rtol=1e-2, atol=1e-2)
