"""Static models of other kinds through the real NPU plugin, on our compiler and device, live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from tests.oracle.real_pipelines import ask, errors, uses

from driver_layer.c_abi.build import compiler

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler"),
]


def weights(*shape: int) -> Any:
    draw = np.random.default_rng(shape)
    return op.constant((draw.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32))


def dense(x: Any, columns: int, rows: int) -> Any:
    product = op.matmul(x, weights(rows, columns), False, True)
    return op.add(product, weights(rows))


def perceptron() -> Any:
    x = op.parameter([4, 32], ov.Type.f32, name="x")
    hidden = op.relu(dense(x, 32, 64))
    return ov.Model([op.softmax(dense(hidden, 64, 10), 1)], [x], "perceptron")


def convolutional() -> Any:
    """Convolutions with and without strides and groups, pooling, a residual, the mean of pixels."""
    x = op.parameter([1, 3, 16, 16], ov.Type.f32, name="x")

    def convolved(value: Any, rows: int, columns: int, stride: int) -> Any:
        kernel = op.multiply(weights(rows, columns, 3, 3), np.float32(1 / np.sqrt(3 * columns)))
        padding = [1, 1], [1, 1]
        out = op.convolution(value, kernel, [stride, stride], *padding, [1, 1])
        return op.relu(op.add(out, weights(1, rows, 1, 1)))

    wide = convolved(x, 8, 3, 1)
    largest = op.max_pool(wide, [2, 2], [1, 1], [1, 1], [0, 0], [3, 3]).output(0)
    first = op.avg_pool(largest, [1, 1], [1, 1], [1, 1], [3, 3], True)
    each = weights(8, 1, 1, 3, 3)
    apart = op.group_convolution(first, each, [1, 1], [1, 1], [1, 1], [1, 1])
    pixels = op.add(convolved(apart, 8, 8, 1), first)
    means = op.reduce_mean(pixels, op.constant(np.array([2, 3])), keep_dims=False)
    return ov.Model([op.softmax(dense(means, 8, 10), 1)], [x], "convolutional")


def encoder() -> Any:
    """One layer of BERT: embeddings, attention of two heads, two norms, and a pooled vector."""
    ids = op.parameter([1, 12], ov.Type.i64, name="ids")
    embedded = op.gather(weights(50, 32), ids, op.constant(np.array(0)))
    x = op.add(embedded, weights(1, 12, 32))

    def heads(value: Any) -> Any:
        shaped = op.reshape(dense(value, 32, 32), op.constant(np.array([1, 12, 2, 16])), False)
        return op.transpose(shaped, op.constant(np.array([0, 2, 1, 3])))

    def norm(value: Any) -> Any:
        centred = op.mvn(value, op.constant(np.array([2])), True, 1e-5, "inside_sqrt")
        return op.add(op.multiply(centred, weights(32)), weights(1, 32))

    rows = op.scaled_dot_product_attention(heads(x), heads(x), heads(x))
    flat = op.reshape(
        op.transpose(rows, op.constant(np.array([0, 2, 1, 3]))),
        op.constant(np.array([1, 12, 32])),
        False,
    )
    x = norm(op.add(x, dense(flat, 32, 32)))
    x = norm(op.add(x, dense(op.gelu(dense(x, 32, 64), "erf"), 64, 32)))
    first = op.gather(x, op.constant(np.array(0)), op.constant(np.array(1)))
    return ov.Model([op.tanh(dense(first, 32, 32))], [ids], "encoder")


KINDS: dict[str, Callable[[], Any]] = {
    made.__name__: made for made in (perceptron, convolutional, encoder)
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("kinds")
    for name, make in KINDS.items():
        ov.save_model(make(), folder / f"{name}.xml")
    return {name: str(folder / f"{name}.xml") for name in KINDS}


def test_each_kind_of_model_equals_the_cpu(paths: dict[str, str]) -> None:
    found = dict(zip(paths, ask(errors, list(paths.values())), strict=True))
    assert max(found.values()) <= 1e-2, found


def test_an_encoder_runs_asynchronously_in_remote_memory_and_from_a_blob(
    paths: dict[str, str],
) -> None:
    found = ask(uses, paths["encoder"])
    for way in ("async", "remote", "imported"):
        assert found[way] <= 1e-2, way
    assert found["known"] == found["layers"]
    assert len(found["profile"]) > 10
