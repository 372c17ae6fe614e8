"""Loading and running a hand-made blob: placement, user buffers, clones."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from driver_layer.abi.elf import SectionFlag
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import DeviceFault, DriverUsageError, KernelError, OutOfMemory
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.memory import AddressSpace, Allocation, MemoryKind
from driver_layer.testing.blobs import dense_blob, dense_builder, is_expected, weights
from driver_layer.testing.elf_builder import RawSection


def snapshot(space: AddressSpace) -> dict[int, bytes]:
    return {a.address: a.data.tobytes() for a in space._allocations}


def test_a_hand_made_blob_computes_on_every_engine(bench, x) -> None:
    assert is_expected(bench.run(bench.load(dense_blob()), x), x)


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_a_hand_made_blob_computes_on_every_platform(bench, x, platform: str) -> None:
    other = type(bench)(platform)
    inference = other.load(dense_blob(platform))
    assert inference.metadata.tile_count == 1
    assert is_expected(other.run(inference, x), x)


def test_buffers_may_change_between_runs(bench, x) -> None:
    inference = bench.load(dense_blob())
    for factor in (1, -2, 3):
        assert is_expected(bench.run(inference, x * factor), x * factor)


def test_applying_the_same_buffers_again_changes_nothing(bench) -> None:
    inference = bench.load(dense_blob())
    first, second = bench.buffers(), bench.buffers()
    inference.apply_input_output([first[0]], [first[1]])
    once = snapshot(bench.space)
    inference.apply_input_output([first[0]], [first[1]])
    assert snapshot(bench.space) == once
    inference.apply_input_output([second[0]], [second[1]])
    assert snapshot(bench.space) != once
    inference.apply_input_output([first[0]], [first[1]])
    assert snapshot(bench.space) == once


def test_flags_of_sections_determine_their_memory_range(bench) -> None:
    bench.load(dense_blob())
    kinds: dict[MemoryKind, int] = {}
    for allocation in bench.space._allocations:
        span = allocation.kind.value
        assert span.begin <= allocation.address < span.end
        kinds[allocation.kind] = kinds.get(allocation.kind, 0) + 1
    # FW: mapped inference, barriers, invariant, variant, text, range, invocation, host record.
    assert kinds == {MemoryKind.FW: 8, MemoryKind.SHAVE: 1, MemoryKind.DMA: 3}


def test_weights_are_used_in_place_in_the_file(bench) -> None:
    blob = bytearray(dense_blob())
    bench.load(blob)
    content = weights().tobytes()
    found = [a for a in bench.space._allocations if a.data.tobytes() == content]
    assert len(found) == 1
    assert not found[0].writable
    assert np.shares_memory(found[0].data, np.frombuffer(blob, np.uint8))


def test_a_clone_shares_unpatched_sections_only(bench, x) -> None:
    inference = bench.load(dense_blob())
    before = len(bench.space._allocations)
    clone = inference.clone()
    # Only four of the twelve allocations are not patched: weights, barriers, variant and text.
    assert len(bench.space._allocations) == 2 * before - 4
    assert is_expected(bench.run(clone, x), x)
    assert is_expected(bench.run(inference, -x), -x)
    assert is_expected(bench.run(clone, 2 * x), 2 * x)


def test_a_clone_outlives_the_original(bench, x) -> None:
    inference = bench.load(bytes(dense_blob()))
    clone = inference.clone()
    inference.free()
    del inference
    gc.collect()
    assert is_expected(bench.run(clone, x), x)
    bench.device.forget(bench.space, clone.address)
    clone.free()
    assert all(a.size in (128, 256) for a in bench.space._allocations), "only x and y are left"


def test_free_releases_all_memory_and_may_be_repeated(bench) -> None:
    inference = bench.load(dense_blob())
    inference.free()
    inference.free()
    assert bench.space.allocated_bytes == 0


def test_the_order_of_calls_is_checked(bench) -> None:
    inference = HostParsedInference(dense_blob(), bench.platform)
    with pytest.raises(DriverUsageError, match="not loaded"):
        inference.apply_input_output([0], [0])
    with pytest.raises(DriverUsageError, match="only a loaded inference"):
        inference.clone()
    inference.load(bench.space)
    with pytest.raises(DriverUsageError, match="loaded already"):
        inference.load(bench.space)
    with pytest.raises(DriverUsageError, match="2 buffers for 1 tensors"):
        inference.apply_input_output([0, 0], [0])


class Tight(AddressSpace):
    """An address space that is exhausted after a number of allocations."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def allocate(self, size: int, kind: MemoryKind, writable: bool = True) -> Allocation:
        self.left -= 1
        if self.left < 0:
            raise OutOfMemory("none left")
        return super().allocate(size, kind, writable)


@pytest.mark.parametrize("left", range(8))
def test_nothing_stays_allocated_when_memory_runs_out(left: int) -> None:
    space = Tight(left)
    inference = HostParsedInference(dense_blob(), PLATFORMS["4000"])
    with pytest.raises(OutOfMemory):
        inference.load(space)
    assert space.allocated_bytes == 0


def test_a_run_without_buffers_faults_and_names_the_task(bench) -> None:
    inference = bench.load(dense_blob())
    with pytest.raises(DeviceFault, match="DMA port 0 DDR, task 0: access to 128 unmapped bytes"):
        bench.device.run_inference(bench.space, inference.address)


def test_the_device_cannot_write_constants(bench, x) -> None:
    builder = dense_builder()
    inference = bench.load(builder.build())
    at_x, _ = bench.buffers()
    constant = next(a for a in bench.space._allocations if a.data.tobytes() == weights().tobytes())
    inference.apply_input_output([at_x], [constant.address])
    with pytest.raises(DeviceFault, match="write to read-only memory"):
        bench.device.run_inference(bench.space, inference.address)


@pytest.mark.parametrize("name", ["shave.params", "shave.text", "task.shave.invocation.0.0"])
def test_verified_kernels_must_be_in_read_only_memory(bench, name: str) -> None:
    builder = dense_builder()
    section = next(section for section in builder.sections if section.name == name)
    section.flags |= SectionFlag.SHF_WRITE
    with pytest.raises(KernelError, match="the device may write"):
        bench.load(builder.build())


def test_empty_sections_need_no_memory(bench, x) -> None:
    builder = dense_builder()
    builder.sections.append(RawSection("task.dma.1.0", 1, 0x2))
    assert is_expected(bench.run(bench.load(builder.build()), x), x)
