"""Weights that the caller supplies: init blobs, main blobs, and the order of the calls."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compiler.in_driver.caller import Caller, Dense

FLAGS = '--config ENABLE_WEIGHTLESS="YES" WS_COMPILE_CALL_NUMBER="{}"'


def in_file(weights: np.ndarray, offset: int = 4242, element: str = "") -> dict[str, object]:
    """Return the runtime information of a model with one constant from a file."""
    return {
        "ws_bin_offset_0": offset,
        "ws_original_size_0": weights.nbytes,
        "ws_original_dtype_0": element or {4: "f32", 2: "f16"}[weights.itemsize],
    }


def names(graph) -> list[str]:
    return [each.name for each in graph.tensors]


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_the_main_blob_computes_with_weights_of_the_init_blob(caller: Caller, kind: type) -> None:
    weights = np.random.default_rng(0).standard_normal((96, 64)).astype(kind)
    dense = Dense(weights)
    model = dense.serialized(**in_file(weights))
    init, main = (caller.graph(model, FLAGS.format(call)) for call in (0, 1))
    assert names(init) == ["vpux_ow_4242", "vpux_tw_4242_f16"]
    assert names(main) == ["x", "vpux_tw_4242_f16", "relu"]
    assert len(main.binary) < len(caller.graph(model).binary) - weights.size
    (prepared,) = caller.infer(init, weights)
    (y,) = caller.infer(main, dense.x, prepared)
    assert np.allclose(y, dense.expected, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("changed", [{"element": "f64"}, {"offset": -1}])
def test_constants_that_differ_from_the_file_stay_in_the_blob(caller, changed) -> None:
    weights = np.random.default_rng(0).standard_normal((96, 64)).astype(np.float32)
    dense = Dense(weights)
    first = caller.graph(dense.serialized(**in_file(weights, **changed)), FLAGS.format(0))
    assert names(first) == ["x", "relu"]
    (y,) = caller.infer(first, dense.x)
    assert np.allclose(y, dense.expected, rtol=1e-2, atol=1e-1)


def test_nothing_follows_the_main_blob(caller, dense) -> None:
    with pytest.raises(Exception, match="WS_COMPILE_CALL_NUMBER=2: call 1 was the last"):
        caller.graph(dense.serialized(), FLAGS.format(2))
