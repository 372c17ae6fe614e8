"""Tasks are verified when a blob is loaded: what a workload needs is bounded by CMX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from driver_layer.abi.layer_map import SECTION_NAME, Layer, encode_layer_map
from driver_layer.abi.platforms import CMX_WORKSPACE_ADDRESS, PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW
from driver_layer.abi.tasks import DPU_INVARIANT
from driver_layer.errors import KernelError, WorkloadError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.ops import op_of
from driver_layer.loader.read import read_blob
from driver_layer.npu.memory import AddressSpace
from driver_layer.testing.blobs import dense_builder
from driver_layer.testing.elf_builder import BlobBuilder

SECTION = "task.dpu.invariant.0.0"
OP = "MatMul fc1"


def builder_with(fields: Mapping[str, Any]) -> BlobBuilder:
    """Return the layer with other registers; relocations set the low bits of act, weight, out."""
    builder = dense_builder()
    section = next(each for each in builder.sections if each.name == SECTION)
    invariants = np.frombuffer(section.data, DPU_INVARIANT).copy()
    for name, value in fields.items():
        invariants["registers"][name] = value
    section.data = invariants.tobytes()
    return builder


def load(builder: BlobBuilder) -> None:
    HostParsedInference(builder.build(), PLATFORMS["4000"]).load(AddressSpace())


STRIDES_OF_ZERO = {"act_strides": 0, "weight_strides": 0, "out_strides": 0}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (STRIDES_OF_ZERO | {"batch": 256, "m": 2048, "n": 2048}, "out has 1073741824 elements"),
        (STRIDES_OF_ZERO | {"batch": 8192, "m": 8192, "k": 8192}, "act has 549755813888 elements"),
        (STRIDES_OF_ZERO, r"out overlaps itself, strides \[0, 0, 0\]"),
        ({"out_strides": (0, 60, 4)}, "out overlaps itself"),
        ({"batch": 2}, "out overlaps itself"),
        ({"k": 8193}, "1 x 4 x 16 x 8193 is not supported"),
        ({"n": 0}, "1 x 4 x 0 x 8 is not supported"),
        ({"workload": 9}, "unknown DPU workload 9"),
        ({"weight_type": 77}, "type 77 is not supported for the DPU's weight"),
        ({"act_strides": (0, 1 << 21, 4)}, "6291488 bytes of act are not all in the CMX of tile 0"),
        ({"out_address": 0x80200000}, "256 bytes of out .* at address 0x8021a000"),
        ({"weight_address": tile_base(1)}, "512 bytes of weight .* at address 0x40419000"),
        ({"act_scale_address": CMX_WORKSPACE_ADDRESS - 1}, "4 bytes of act_scale"),
        ({"scale_type": 2, "scale_strides": 1 << 20}, "bytes of scale are not all in the CMX"),
        ({"zero_type": 8, "zero_address": 64}, "bytes of zero .* at address 0x40"),
    ],
)
def test_a_workload_that_needs_more_than_cmx_is_rejected(
    fields: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(WorkloadError, match=f"DPU tile 0, task 0: .*{message}") as caught:
        load(builder_with(fields))
    assert caught.value.section == SECTION
    assert caught.value.offset == 0


def test_a_group_beyond_k_needs_no_memory(bench, x) -> None:
    """A table with one entry for each column is not repeated for 2**32 elements."""
    fields = {"group": (1 << 32) - 1, "zero_type": 0}
    assert np.isfinite(bench.run(bench.load(builder_with(fields).build()), x)).all()


def test_a_rejection_names_the_operation_of_the_task() -> None:
    builder = builder_with({"n": 0})
    layers = encode_layer_map([Layer("x", 0), Layer("fc1", 0, "MatMul")], {("dpu", 0): [1]})
    builder.add(SECTION_NAME, layers)
    with pytest.raises(WorkloadError, match=f"DPU tile 0, task 0 \\({OP}\\): a workload of"):
        load(builder)


def test_a_rejected_window_of_shave_names_task_operation_and_address() -> None:
    builder = dense_builder()
    section = next(each for each in builder.sections if each.name == "shave.params")
    windows = np.frombuffer(section.data, WINDOW, offset=KERNEL_ARGS.itemsize).copy()
    windows["address"][1] = 0x80200000  # a relocation sets the low bits
    section.data = section.data[: KERNEL_ARGS.itemsize] + windows.tobytes()
    layers = encode_layer_map([Layer("fc1", 0, "MatMul")], {("shave", 0): [0]})
    builder.add(SECTION_NAME, layers)
    message = f"SHAVE tile 0, task 0 \\({OP}\\): a window from 0x8021a000 .* leaves the CMX"
    with pytest.raises(KernelError, match=message):
        load(builder)


@pytest.mark.parametrize(
    ("queue", "task", "op"),
    [
        ("DPU tile 0", 1, OP),
        ("DMA port 1 CMX", 0, "x"),
        ("DPU tile 0", 2, ""),
        ("DPU tile 3", 0, ""),
        (None, None, ""),
    ],
)
def test_the_operation_of_a_task_is_that_of_the_layer_map(
    queue: str | None, task: int | None, op: str
) -> None:
    builder = dense_builder()
    tasks = {("dpu", 0): [0, 1], ("dma_cmx", 1): [0]}
    builder.add(SECTION_NAME, encode_layer_map([Layer("x", 0), Layer("fc1", 0, "MatMul")], tasks))
    assert op_of(read_blob(builder.build()), queue, task) == op


def test_without_a_readable_layer_map_tasks_have_no_operation() -> None:
    builder = dense_builder()
    assert op_of(read_blob(builder.build()), "DPU tile 0", 0) == ""
    builder.add(SECTION_NAME, b"damaged")
    assert op_of(read_blob(builder.build()), "DPU tile 0", 0) == ""
