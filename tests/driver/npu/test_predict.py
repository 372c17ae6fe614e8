"""Prediction of blobs' timelines."""

from __future__ import annotations

import contextlib
import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.platforms import PLATFORMS, Platform
from driver_layer.errors import BlobError, DeviceFault, OutOfMemory
from driver_layer.npu.timeline import (
    Engine,
    TaskTime,
    predict,
    predict_loaded,
)
from driver_layer.testing import blobs

LUNAR = PLATFORMS["4000"]
BLOB = blobs.dense_blob()


def spans(times: list[TaskTime]) -> dict[str, tuple[float, float]]:
    return {f"{time.queue}{time.index}": (time.begin_ns, time.end_ns) for time in times}


def makespan(times: list[TaskTime]) -> float:
    return max(time.end_ns for time in times)


def test_the_dense_layer_takes_as_long_as_computed_by_hand() -> None:
    found = spans(predict(BLOB))
    latency = 300 + 50 / 0.971
    word = 1 / (64 * 0.958589 * 0.971)
    x = latency + 128 * word
    weights = x + latency + 512 * word
    multiplied = weights + 640 / (32 * 8 * 0.971)  # reading 640 bytes; multiplying takes 4 cycles
    cut_off = multiplied + (2200 + 2 * 2 / 0.56) / 0.971  # two of four rows on each SHAVE
    expected = {
        "DMA port 0 DDR0": (0, x),
        "DMA port 0 DDR1": (x, weights),
        "DPU tile 00": (weights, multiplied),
        "SHAVE tile 00": (multiplied, cut_off),
        "DMA port 0 CMX0": (cut_off, cut_off + latency + 256 * word),
    }
    assert found.keys() == expected.keys()
    for name, span in expected.items():
        assert found[name] == pytest.approx(span), name


def test_each_task_has_its_bytes_macs_engine_and_tile() -> None:
    loads, store, product, kernel = (
        [time for time in predict(BLOB) if time.queue == queue]
        for queue in ("DMA port 0 DDR", "DMA port 0 CMX", "DPU tile 0", "SHAVE tile 0")
    )
    assert [(one.nbytes, one.ddr_bytes, one.tile) for one in loads] == [
        (128, 128, None),
        (512, 512, None),
    ]
    assert (store[0].nbytes, store[0].engine) == (256, Engine.DMA)
    assert (product[0].macs, product[0].tile) == (4 * 16 * 8, 0)
    assert (kernel[0].nbytes, kernel[0].tile) == (2 * 4 * 16 * 4, 0)


def test_a_timeline_does_not_depend_on_the_weights() -> None:
    weights = blobs.weights().tobytes()
    assert weights in BLOB
    assert predict(BLOB.replace(weights, bytes(len(weights)))) == predict(BLOB)


def test_a_loaded_inference_has_the_timeline_of_its_blob(bench, x: np.ndarray) -> None:
    inference = bench.load(BLOB)
    bench.run(inference, x)
    assert predict_loaded(bench.space, inference.address, LUNAR) == predict(BLOB)


@pytest.mark.parametrize("clock", ["dpu_mhz", "cmx_mhz", "ddr_mb_per_s"])
@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
def test_doubling_a_clock_never_makes_the_dense_layer_slower(
    platform: Platform, clock: str
) -> None:
    blob = blobs.dense_blob(platform.name)
    faster = dataclasses.replace(platform, **{clock: 2 * getattr(platform, clock)})
    assert makespan(predict(blob, faster)) <= makespan(predict(blob, platform))
    assert predict(blob, platform) == predict(blob), "the blob's own platform is the default"


def test_bytes_that_are_not_a_blob_are_rejected() -> None:
    with pytest.raises(BlobError):
        predict(b"not a blob")


def test_a_blob_for_another_architecture_is_rejected() -> None:
    with pytest.raises(BlobError, match="made for architecture"):
        predict(blobs.dense_blob("3720"), LUNAR)


@given(
    st.lists(
        st.tuples(st.integers(0, len(BLOB) // 8 - 1), st.binary(min_size=8, max_size=8)),
        min_size=1,
        max_size=3,
    )
)
def test_a_damaged_blob_has_a_timeline_or_a_typed_error(damage: list[tuple[int, bytes]]) -> None:
    blob = bytearray(BLOB)
    for word, content in damage:
        blob[word * 8 : word * 8 + 8] = content
    with contextlib.suppress(BlobError, DeviceFault, OutOfMemory):
        times = predict(bytes(blob))
        assert all(0 <= time.begin_ns <= time.end_ns < math.inf for time in times)
