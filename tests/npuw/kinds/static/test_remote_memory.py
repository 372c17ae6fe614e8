"""Memory of remote tensors: lifetime and copies."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys

import numpy as np
import pytest

from driver_layer import ze
from npuw_layer import Core, RemoteTensor, Tensor
from npuw_layer.errors import DeviceError, RemoteError, TensorError

SHAPE = (4, 16)


def some(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def shared(handle: object) -> dict[str, object]:
    return {"MEM_TYPE": "SHARED_BUF", "MEM_HANDLE": handle}


# Lifetime of memory.


def test_memory_is_freed_with_its_last_tensor(context, level_zero) -> None:
    before = level_zero.space.allocated_bytes
    tensor = context.create_tensor("f32", (1024, 1024))
    assert level_zero.space.allocated_bytes == before + (4 << 20)
    del tensor
    gc.collect()
    assert level_zero.space.allocated_bytes == before


def test_a_garbage_collected_tensor_is_freed_at_the_next_allocation(context, level_zero) -> None:
    """The collector may run where the driver holds a lock: nothing can be freed there."""
    before = level_zero.space.allocated_bytes
    cycle: list[object] = [context.create_tensor("f32", (1024, 1024))]
    cycle.append(cycle)
    del cycle
    with level_zero.space._lock:
        gc.collect()
    assert level_zero.space.allocated_bytes == before + (4 << 20)
    small = context.create_tensor("f32", (1,))
    assert level_zero.space.allocated_bytes == before + 4096
    del small


def test_memory_freed_by_its_owner_is_not_used(context, level_zero, classify) -> None:
    theirs = classify.compiled.get_context()
    handle = theirs.get_params()["L0_CONTEXT"]
    memory = ze.zeMemAllocHost(handle, 4096)
    gain = theirs.create_tensor("f32", SHAPE, shared(memory))
    request = classify.compiled.create_infer_request()
    inputs = classify.inputs(1) | {"gain": gain}
    request.infer(inputs)
    ze.zeMemFree(handle, memory)
    for use in (lambda: gain.data, lambda: gain.copy_from(some()), request.infer):
        with pytest.raises(RemoteError, match="was freed; keep the memory of SHARED_BUF"):
            use()
    request.infer(classify.inputs(1))


def test_freeing_after_the_end_of_the_context_only_warns(context, level_zero, caplog) -> None:
    tensor: RemoteTensor | None = context.create_tensor("f32", SHAPE)
    level_zero.alive = False  # simulates a lost context with live memory
    with caplog.at_level(logging.WARNING):
        tensor = None
        gc.collect()
    assert tensor is None
    assert "zeMemFree" in caplog.text
    assert "ZE_RESULT_ERROR_INVALID_ARGUMENT" in caplog.text


def test_tensors_may_outlive_the_interpreter() -> None:
    code = (
        "from npuw_layer import Core\n"
        "context = Core().get_default_context('NPU')\n"
        "kept = context.create_tensor('f32', (4, 4))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


# Copies.


@pytest.mark.parametrize("far", [False, True], ids=["same Core", "another Core"])
def test_tensors_are_copied_to_each_other(context, far: bool) -> None:
    other = Core().get_default_context("NPU") if far else context
    one, two = context.create_tensor("f32", SHAPE), other.create_tensor("f32", SHAPE)
    one.copy_from(some())
    two.copy_from(one)
    assert np.array_equal(two.data, some())
    two.data[...] = 3
    two.copy_to(one)
    assert (one.data == 3).all()


def test_copies_need_equal_types_and_shapes(context) -> None:
    tensor = context.create_tensor("f32", SHAPE)
    for wrong in (some().astype(np.float64), some()[:2], context.create_tensor("i32", SHAPE)):
        with pytest.raises(TensorError):
            tensor.copy_from(wrong)
        with pytest.raises(TensorError):
            tensor.copy_to(wrong)
    for wrong in ([1.0], 3.0, Tensor([1.0])):  # pyright: ignore[reportArgumentType]
        for copy in (tensor.copy_from, tensor.copy_to):
            with pytest.raises(TensorError, match="is not a tensor; pass a Tensor, a Remote"):
                copy(wrong)
    frozen = some()
    frozen.flags.writeable = False
    with pytest.raises(TensorError, match="read-only"):
        tensor.copy_to(frozen)


def test_a_failed_copy_leaks_no_memory(context, level_zero, monkeypatch) -> None:
    memory = ze.zeMemAllocDevice(level_zero, 4096, 0, level_zero.device)
    tensor = context.create_tensor("f32", SHAPE, shared(memory))
    before = level_zero.space.allocated_bytes

    def lost(*_: object) -> None:
        raise ze.ZeError(ze.ze_result_t.ZE_RESULT_ERROR_DEVICE_LOST, "gone")

    monkeypatch.setattr(ze, "zeCommandQueueSynchronize", lost)
    for copy in (tensor.copy_from, tensor.copy_to):
        with pytest.raises(DeviceError, match=r"copying 256 bytes: .*DEVICE_LOST"):
            copy(some())
    assert level_zero.space.allocated_bytes == before
