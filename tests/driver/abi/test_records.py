"""Sizes, offsets and numbers of the abi's records, as in docs/reference/elf.md."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi import dtypes, elf, metadata, notes, platforms, shave, tasks
from driver_layer.abi.layout import field_offset, read_text, record, text_field

SIZES = {
    elf.EHDR: 64,
    elf.SHDR: 64,
    elf.SYM: 24,
    elf.RELA: 24,
    notes.NOTE: 32,
    metadata.CHAIN: 32,
    metadata.TENSOR_REF: 384,
    metadata.OV_NODE: 8784,
    metadata.RESOURCE_REQUIREMENTS: 12,
    metadata.PERFORMANCE_METRICS: 320,
    tasks.TASK_REFERENCE: 40,
    tasks.MAPPED_INFERENCE: 1728,
    tasks.HOST_PARSED_INFERENCE: 384,
    tasks.DMA_DESCRIPTOR: 192,
    tasks.DMA_TASK: 224,
    tasks.DPU_INVARIANT: 352,
    tasks.DPU_VARIANT: 224,
    tasks.KERNEL_RANGE: 40,
    tasks.KERNEL_INVOCATION: 96,
    tasks.BARRIER_CONFIG: 12,
    shave.INSTRUCTION: 16,
}

OFFSETS = [
    (elf.EHDR, "e_shoff", 40),
    (metadata.TENSOR_REF, "name", 104),
    (metadata.TENSOR_REF, "order", 360),
    (metadata.TENSOR_REF, "flags", 380),
    (metadata.OV_NODE, "shape", 8192),
    (metadata.OV_NODE, "type", 8768),
    (tasks.MAPPED_INFERENCE, "dma_ddr", 64),
    (tasks.MAPPED_INFERENCE, "dma_cmx", 304),
    (tasks.MAPPED_INFERENCE, "invariants", 544),
    (tasks.MAPPED_INFERENCE, "variants", 784),
    (tasks.MAPPED_INFERENCE, "kernel_ranges", 1024),
    (tasks.MAPPED_INFERENCE, "kernel_invocations", 1264),
    (tasks.MAPPED_INFERENCE, "media", 1504),
    (tasks.MAPPED_INFERENCE, "barriers", 1544),
    (tasks.MAPPED_INFERENCE, "shave_runtime", 1584),
    (tasks.MAPPED_INFERENCE, "managed_mapped_inference", 1688),
    (tasks.DMA_DESCRIPTOR, "cfg", 16),
    (tasks.DMA_DESCRIPTOR, "src", 40),
    (tasks.DMA_DESCRIPTOR, "dst", 48),
    (tasks.DMA_DESCRIPTOR, "producer_lo", 64),
    (tasks.DMA_DESCRIPTOR, "src_dim1", 96),
    (tasks.DMA_DESCRIPTOR, "dst_stride2", 124),
    (tasks.DMA_DESCRIPTOR, "src_stride3", 144),
    (tasks.DPU_INVARIANT, "scheduling", 288),
]

SECTION_TYPES = {
    "VPU_SHT_NETDESC": 0x8AAAAAAA,
    "VPU_SHT_CMX_METADATA": 0x8AAAAAAC,
    "VPU_SHT_CMX_WORKSPACE": 0x8AAAAAAD,
    "VPU_SHT_PERF_METRICS": 0x8AAAAAAE,
    "VPU_SHT_PLATFORM_INFO": 0x8AAAAAAF,
    "VPU_SHT_HPI": 0x8AAAAAB3,
}

RELOCATIONS = {
    "R_VPU_64": 0,
    "R_VPU_32": 4,
    "R_VPU_LO_21": 11,
    "R_VPU_64_BIT_OR_B21_B26_UNSET": 18,
    "R_VPU_32_OR_LO_19_LSB_21_RSHIFT_2": 24,
    "R_VPU_16_SUM": 1011,
    "R_VPU_64_MULT_SUB": 1013,
}


@pytest.mark.parametrize(("kind", "size"), SIZES.items())
def test_a_record_has_its_size(kind: np.dtype, size: int) -> None:
    assert kind.itemsize == size


@pytest.mark.parametrize(("kind", "field", "offset"), OFFSETS)
def test_a_field_has_its_offset(kind: np.dtype, field: str, offset: int) -> None:
    assert field_offset(kind, field) == offset


def test_section_types_flags_and_relocations_have_their_numbers() -> None:
    for name, value in SECTION_TYPES.items():
        assert elf.SectionType[name] == value
    for name, value in RELOCATIONS.items():
        assert elf.Relocation[name] == value
    assert elf.SectionFlag.VPU_SHF_JIT == 0x100000
    assert elf.SectionFlag.VPU_SHF_PROC_SHAVE == 0x40000000
    assert elf.SymbolType.VPU_STT_ENTRY == 10


def test_cmx_addresses_are_those_of_the_real_loader() -> None:
    assert platforms.CMX_WORKSPACE_ADDRESS == 0x40218000
    assert platforms.CMX_METADATA_ADDRESS == 0x40203C00


def test_overlapping_fields_and_fields_past_the_end_are_rejected() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        record(8, ("a", 0, "<u4"), ("b", 2, "<u4"))
    with pytest.raises(ValueError, match="end at 12"):
        record(8, ("a", 0, "<u8"), ("b", 8, "<u4"))


@given(st.text(max_size=300))
def test_text_fields_are_cut_between_characters_and_read_back(text: str) -> None:
    field = text_field(text, 64)
    assert len(field) < 64
    back = read_text(field.ljust(64, b"\0"))
    assert text.split("\0")[0].startswith(back)


@pytest.mark.parametrize(
    ("ours", "blob", "accepted"),
    [
        ((1, 2, 7), (1, 2, 9), True),
        ((1, 2, 7), (1, 1, 0), True),
        ((1, 2, 7), (1, 3, 0), False),
        ((1, 2, 7), (2, 0, 0), False),
        ((0, 2, 0), (0, 1, 0), False),
    ],
)
def test_versions_accept_the_same_major_and_no_newer_minor(
    ours: tuple[int, int, int], blob: tuple[int, int, int], accepted: bool
) -> None:
    assert notes.Version(*ours).accepts(notes.Version(*blob)) is accepted


def test_a_container_is_read_in_place_and_may_have_additional_arrays() -> None:
    kind = record(8, ("a", 0, "<u4"), ("b", 4, "<u4"))
    written = np.array([(1, 2), (3, 4)], kind)
    data = metadata.encode_container([written, written[:0], written])
    for wanted in (2, 3):
        again = metadata.decode_container(data, [kind] * wanted)
        assert [array.records.tolist() for array in again] == [
            [(1, 2), (3, 4)],
            [],
            [(1, 2), (3, 4)],
        ][:wanted]
        assert (again[0].offset, again[1].offset) == (32, 80)


def test_elements_of_another_size_are_rejected_as_by_the_public_loader() -> None:
    short = record(8, ("a", 0, "<u4"), ("b", 4, "<u4"))
    long = record(12, ("a", 0, "<u4"), ("b", 4, "<u4"), ("c", 8, "<u4"))
    for written, read in ((short, long), (long, short)):
        data = metadata.encode_container([np.zeros(2, written)])
        with pytest.raises(metadata.ContainerError, match="elements of") as caught:
            metadata.decode_container(data, [read])
        assert caught.value.offset == 0


@given(st.binary(max_size=200), st.integers(0, 300))
def test_a_damaged_container_raises_only_the_typed_error(noise: bytes, at: int) -> None:
    good = metadata.encode_container([np.zeros(3, metadata.RESOURCE_REQUIREMENTS)])
    damaged = (good[:at] + noise + good[at + len(noise) :])[: len(good)]
    with contextlib.suppress(metadata.ContainerError):
        metadata.decode_container(damaged, [metadata.RESOURCE_REQUIREMENTS])


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_bf16_rounds_to_the_nearest(values: list[float]) -> None:
    f32 = np.array(values, np.float32)
    back = dtypes.bf16_to_f32(dtypes.f32_to_bf16(f32))
    finite = np.isfinite(back)
    assert np.all(np.abs(back[finite] - f32[finite]) <= np.abs(f32[finite]) * 2**-8 + 1e-38)


def test_a_nan_stays_a_nan_in_bf16() -> None:
    assert np.isnan(dtypes.bf16_to_f32(dtypes.f32_to_bf16(np.array([np.nan], np.float32))))[0]


def test_importing_the_abi_loads_only_numpy() -> None:
    program = (
        "import sys; import driver_layer.abi.elf, driver_layer.abi.tasks, driver_layer.abi.shave;"
        "bad = {'elftools', 'lief', 'driver_layer.npu', 'driver_layer.ze'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
