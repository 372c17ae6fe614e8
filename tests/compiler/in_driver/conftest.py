"""A device with the compiler, and models that are passed to it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compiler.in_driver.caller import Caller, Dense

from compiler_layer.in_driver.compiler import DriverCompiler
from driver_layer.ze import graph_compiler


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> Caller:
    """Return a caller whose driver has this source tree's compiler, installed or not."""
    monkeypatch.setattr(graph_compiler, "installed_compiler", DriverCompiler)
    return Caller()


@pytest.fixture
def dense() -> Dense:
    return Dense(np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32))
