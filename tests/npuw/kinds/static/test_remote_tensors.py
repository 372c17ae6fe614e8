"""Remote tensors: the kinds of memory that they accept, and rejections with their reasons."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.npu.shareable import CAN_SHARE
from npuw_layer import (
    Core,
    FileDescriptor,
    page_aligned_bytes,
)
from npuw_layer.errors import NpuwFault, OptionError, RemoteError, TensorError

SHAPE = (4, 16)
NBYTES = 4 * 16 * 4
needs_memfd = pytest.mark.skipif(not CAN_SHARE, reason="the host has no memfd")


def some(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def shared(handle: object, **more: str) -> dict[str, object]:
    return {"MEM_TYPE": "SHARED_BUF", "MEM_HANDLE": handle, **more}


def cpu_va(pages: object, **more: str) -> dict[str, object]:
    return {"MEM_TYPE": "CPU_VA", "MEM_HANDLE": pages, **more}


def mapped(file: object, **more: str) -> dict[str, object]:
    return {"MEM_TYPE": "MMAPED_FILE", "FILE_DESCRIPTOR": file, **more}


# Kinds of memory.


def test_memory_is_allocated_through_level_zero_in_complete_pages(context, level_zero) -> None:
    tensor = context.create_tensor("f32", SHAPE)
    params = tensor.get_params()
    assert params["MEM_TYPE"] == "L0_INTERNAL_BUF"
    assert params["TENSOR_TYPE"] == "BINDED"
    assert params["L0_CONTEXT"] is level_zero
    base, size = ze.zeMemGetAddressRange(level_zero, params["MEM_HANDLE"])
    assert (base, size) == (params["MEM_HANDLE"], 4096)
    assert not tensor.data.any()
    assert (tensor.element_type, tensor.shape, tensor.byte_size) == ("f32", SHAPE, NBYTES)
    assert tensor.get_device_name() == context.get_device_name() == "NPU"


def test_a_host_tensor_is_visible_to_host_and_device(context, level_zero) -> None:
    tensor = context.create_host_tensor(np.float32, SHAPE)
    tensor.data[...] = some()
    address = tensor.get_params()["MEM_HANDLE"]
    assert bytes(level_zero.bytes_at(address, NBYTES)) == some().tobytes()


@pytest.mark.parametrize(
    "allocate",
    [
        lambda context: ze.zeMemAllocHost(context, 4096),
        lambda context: ze.zeMemAllocShared(context, 4096, 0, context.device),
    ],
    ids=["host", "shared"],
)
def test_shared_buf_is_memory_of_level_zero(context, level_zero, allocate) -> None:
    memory = allocate(level_zero)
    whole = context.create_tensor("f32", SHAPE, shared(memory))
    part = context.create_tensor("f32", SHAPE, shared(memory.address + 1024))
    whole.data[...], part.data[...] = some(1), some(2)
    assert bytes(memory.data[:NBYTES]) == some(1).tobytes()
    assert bytes(memory.data[1024 : 1024 + NBYTES]) == some(2).tobytes()
    del whole, part
    gc.collect()
    assert memory.alive  # the caller owns it
    ze.zeMemFree(level_zero, memory)


def test_memory_invisible_to_the_host_is_copied_by_the_device(context, level_zero) -> None:
    memory = ze.zeMemAllocDevice(level_zero, 4096, 0, level_zero.device)
    tensor = context.create_tensor("f32", SHAPE, shared(memory))
    with pytest.raises(
        RemoteError, match=r"the host cannot access this memory; use copy_to and copy_from"
    ):
        tensor.data  # noqa: B018 (it is the reading that is refused)
    tensor.copy_from(some())
    found = np.zeros(SHAPE, np.float32)
    tensor.copy_to(found)
    assert np.array_equal(found, some())


@needs_memfd
def test_a_descriptor_imports_memory_of_another_core(context, level_zero) -> None:
    """Both contexts share the memory, like a DMA-BUF, and it outlives its creator."""
    flag = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
    desc = ze.ze_host_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(flag))
    elsewhere = Core().get_default_context("NPU").get_params()["L0_CONTEXT"]
    memory = ze.zeMemAllocHost(elsewhere, 4096, 0, desc)
    asked = ze.ze_external_memory_export_fd_t(flag)
    described = ze.zeMemGetAllocProperties(elsewhere, memory, asked)
    tensor = context.create_tensor("f32", SHAPE, shared(described.pNext.fd))
    os.close(described.pNext.fd)
    memory.data[:NBYTES] = some().view(np.uint8).reshape(-1)
    assert np.array_equal(tensor.data, some())
    ze.zeMemFree(elsewhere, memory)
    assert np.array_equal(tensor.data, some())


@needs_memfd
def test_a_descriptor_of_another_file_is_rejected(context, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    with path.open("rb") as file, pytest.raises(RemoteError, match="SHARED_BUF: descriptor"):
        context.create_tensor("f32", SHAPE, shared(file.fileno()))
    with pytest.raises(RemoteError, match="SHARED_BUF: descriptor 987654"):
        context.create_tensor("f32", SHAPE, shared(987654))


def test_cpu_va_is_the_callers_own_pages(context) -> None:
    pages = page_aligned_bytes(NBYTES)
    tensor = context.create_tensor("f32", SHAPE, cpu_va(pages))
    pages[:NBYTES] = some().view(np.uint8).reshape(-1)
    assert np.array_equal(tensor.data, some())
    tensor.data[...] = 1
    assert (pages[:NBYTES].view(np.float32) == 1).all()


@pytest.mark.parametrize("offset", [0, 64, 4096, 4160])
def test_a_file_is_mapped_from_any_offset_aligned_for_tensors(
    context, level_zero, tmp_path: Path, offset: int
) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(bytes(offset) + some().tobytes())
    before = level_zero.space.allocated_bytes
    tensor = context.create_tensor("f32", SHAPE, mapped(FileDescriptor(path, offset)))
    assert level_zero.space.allocated_bytes - before == offset % 4096 + NBYTES
    assert np.array_equal(tensor.data, some())
    assert tensor.get_params()["TENSOR_TYPE"] == "INPUT"
    assert tensor.get_params()["FILE_DESCRIPTOR"].offset == offset
    with pytest.raises(TensorError, match="MMAPED_FILE memory is read-only"):
        tensor.copy_from(some())
    with pytest.raises(ValueError, match="read-only"):
        tensor.data[...] = 1


def test_a_file_at_an_odd_offset_is_copied(context, level_zero, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"odd" + some().tobytes())
    tensor = context.create_tensor("f32", SHAPE, mapped(FileDescriptor(path, 3)))
    assert np.array_equal(tensor.data, some())
    path.write_bytes(bytes(3 + NBYTES))
    assert np.array_equal(tensor.data, some())


def test_a_path_is_accepted_as_a_file_descriptor(context, tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(some().tobytes())
    for file in (path, str(path)):
        assert np.array_equal(context.create_tensor("f32", SHAPE, mapped(file)).data, some())


@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i64", "i8", "u8", "boolean"])
def test_element_types_are_openvinos(context, element: str) -> None:
    ov = pytest.importorskip("openvino")
    kind = getattr(ov.Type, element)
    assert context.create_tensor(kind, (2,)).element_type == element
    assert context.create_tensor(element, (2,)).byte_size == kind.size * 2


# Rejections and their messages.

NUMPY_MEMORY = np.zeros(8192, np.uint8)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"MEM_TYPE": "SHARED"}, "MEM_TYPE = 'SHARED'; use one of L0_INTERNAL_BUF, SHARED_BUF"),
        (
            {"MEM_TYPE": "L0_INTERNAL_BUF", "TENSOR_TYPE": "BOUND"},
            "TENSOR_TYPE = 'BOUND'; use one of",
        ),
        ({"TENSOR_TYPE": "INPUT"}, "TENSOR_TYPE without MEM_TYPE"),
        ({"MEM_HANDLE": 1}, "MEM_HANDLE without MEM_TYPE"),
        ({"MEM_TIPE": "CPU_VA"}, "unknown property 'MEM_TIPE'; did you mean MEM_TYPE"),
        ({"MEM_TYPE": "SHARED_BUF"}, "SHARED_BUF needs MEM_HANDLE"),
        ({"MEM_TYPE": "CPU_VA"}, "CPU_VA needs MEM_HANDLE"),
        ({"MEM_TYPE": "MMAPED_FILE"}, "MMAPED_FILE needs FILE_DESCRIPTOR"),
        (
            {"MEM_TYPE": "L0_INTERNAL_BUF", "MEM_HANDLE": 1},
            "L0_INTERNAL_BUF does not accept MEM_HANDLE",
        ),
        (cpu_va(NUMPY_MEMORY, FILE_DESCRIPTOR="x"), "CPU_VA does not accept FILE_DESCRIPTOR"),
        (shared(NUMPY_MEMORY), "a ndarray was not allocated through Level Zero.*malloc.*CPU_VA"),
        (shared(NUMPY_MEMORY.ctypes.data), "address 0x[0-9a-f]+ is not, or no longer, memory of"),
        (shared(b"bytes"), "a bytes was not allocated through Level Zero"),
        (shared(True), "a bool was not allocated through Level Zero"),
        (shared(-1), "is not, or no longer, memory of this context"),
        (
            cpu_va(page_aligned_bytes(8192)[1:]),
            "begin 1 bytes behind a page boundary.*complete pages",
        ),
        (cpu_va(page_aligned_bytes(8192)[:100]), "CPU_VA: 100 bytes"),
        (cpu_va(page_aligned_bytes(8192)[:0]), "CPU_VA: 0 bytes"),
        (
            cpu_va(page_aligned_bytes(8192)[::2]),
            "CPU_VA: MEM_HANDLE is not a contiguous array",
        ),
        (cpu_va(12345), "CPU_VA: MEM_HANDLE is not a contiguous array"),
        (mapped(""), "FILE_DESCRIPTOR: the path is empty"),
        (mapped(FileDescriptor("")), "FILE_DESCRIPTOR: the path is empty"),
        (mapped(7), "FILE_DESCRIPTOR = 7; pass a path or a FileDescriptor"),
        (mapped(FileDescriptor("x", -1)), "offset -1 is not >= 0"),
        (mapped("/nowhere/at/all"), "MMAPED_FILE /nowhere/at/all: No such file"),
        (mapped("/"), "MMAPED_FILE /: Is a directory"),
        (mapped("nul\0"), "MMAPED_FILE"),
        (mapped(FileDescriptor("x", "1")), "offset '1' is not >= 0"),  # pyright: ignore[reportArgumentType]
        ({7: 8}, "unknown property 7; use one of"),
        (mapped("x", TENSOR_TYPE="OUTPUT"), "OUTPUT: MMAPED_FILE is only for inputs"),
        (mapped("x", TENSOR_TYPE="BINDED"), "BINDED: MMAPED_FILE is only for inputs"),
    ],
    ids=lambda value: value[:28] if isinstance(value, str) else "",
)
def test_wrong_properties_are_rejected(context, properties: dict, message: str) -> None:
    with pytest.raises(RemoteError, match=message):
        context.create_tensor("f32", SHAPE, properties)


def test_a_pipe_is_rejected_without_waiting(context, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RemoteError, match=r"MMAPED_FILE .*pipe: not a regular file"):
        context.create_tensor("f32", SHAPE, mapped(tmp_path / "pipe"))


def test_a_truncated_mapped_file_is_reported_before_it_is_read(context, tmp_path) -> None:
    path = tmp_path / "rows"
    some().tofile(path)
    tensor = context.create_tensor("f32", SHAPE, mapped(path))
    assert np.array_equal(tensor.data, some())
    os.truncate(path, 0)
    with pytest.raises(NpuwFault, match="rows was truncated from 256 to 0 bytes while"):
        _ = tensor.data


def test_the_error_for_too_little_memory_states_both_sizes(context, level_zero, tmp_path) -> None:
    memory = ze.zeMemAllocHost(level_zero, 4096)
    path = tmp_path / "short"
    path.write_bytes(bytes(100))
    refused = [
        (shared(memory.address + 4000), "the tensor needs 256 bytes, the memory has 96"),
        (mapped(path), "short: the tensor needs 256 bytes, the memory has 100"),
        (
            mapped(FileDescriptor(str(path), 91)),
            "short, from byte 91 on: the tensor needs 256 bytes, the memory has 9",
        ),
        (
            mapped(FileDescriptor(str(path), 192)),
            "short, from byte 192 on: the tensor needs 256 bytes, the memory has 0",
        ),
    ]
    for properties, message in refused:
        with pytest.raises(RemoteError, match=message):
            context.create_tensor("f32", SHAPE, properties)
    with pytest.raises(RemoteError, match="the tensor needs 8192 bytes, the memory has 4096"):
        context.create_tensor("f32", (2048,), cpu_va(page_aligned_bytes(4096)))


def test_memory_of_another_context_is_rejected(context) -> None:
    elsewhere = Core().get_default_context("NPU").get_params()["L0_CONTEXT"]
    memory = ze.zeMemAllocHost(elsewhere, 4096)
    with pytest.raises(RemoteError, match="or copy it from its context"):
        context.create_tensor("f32", SHAPE, shared(memory))


def test_read_only_memory_is_for_inputs(context) -> None:
    pages = page_aligned_bytes(NBYTES)
    pages.flags.writeable = False
    with pytest.raises(RemoteError, match="CPU_VA: the memory is read-only"):
        context.create_tensor("f32", SHAPE, cpu_va(pages))
    tensor = context.create_tensor("f32", SHAPE, cpu_va(pages, TENSOR_TYPE="INPUT"))
    assert not tensor.data.any()


@pytest.mark.parametrize(
    ("element", "shape", "message"),
    [
        ("f8", SHAPE, "unknown element type 'f8'; use one of f64, f32"),
        (object, SHAPE, "unknown element type"),
        ("complex64", SHAPE, "unknown element type 'complex64'"),
        ("u4", SHAPE, "two elements share a byte"),
        (None, SHAPE, "unknown element type None"),
        ("f32", 4, "shape 4 is not a sequence of integers"),
        ("f32", (2.5,), r"shape \(2.5,\) is not a sequence of integers"),
        ("f32", "ab", "shape 'ab' is not a sequence of integers"),
        ("f32", (4, 0), r"shape \[4, 0\] has no elements"),
        ("f32", (-1,), r"shape \[-1\] has no elements"),
        ("f32", (1,) * 65, "a tensor of 65 dimensions: at most 64 are possible"),
    ],
)
def test_a_tensor_without_memory_is_rejected(context, element, shape, message: str) -> None:
    with pytest.raises(RemoteError, match=message):
        context.create_tensor(element, shape)


def test_a_tensor_of_the_highest_rank_is_readable(context) -> None:
    assert context.create_tensor("f32", (1,) * 64).data.ndim == 64


# Contexts.


def test_all_contexts_of_a_core_are_the_same(core, level_zero) -> None:
    made = core.create_context("NPU", {"L0_CONTEXT": level_zero})
    assert made.get_params()["L0_CONTEXT"] is level_zero
    assert core.create_context("NPU").get_params()["L0_CONTEXT"] is level_zero
    older = core.create_context("NPU", {"NPU_PLATFORM": "3720"})
    assert older.get_params()["L0_CONTEXT"] is not level_zero


def test_another_cores_context_is_rejected(core) -> None:
    with pytest.raises(RemoteError, match="L0_CONTEXT: not this Core's context"):
        Core().create_context("NPU", core.get_default_context("NPU").get_params())
    with pytest.raises(OptionError, match="device 'GPU'"):
        core.get_default_context("GPU")
