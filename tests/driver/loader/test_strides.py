"""Relocations of DMA descriptors for the strides of the caller's tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from driver_layer.abi.elf import DMA_SYMBOL, RELA, Relocation, SectionFlag, SectionType
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.abi.tasks import DMA_DESCRIPTOR
from driver_layer.errors import BlobError, DriverUsageError, RelocError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.loader.strides import SIDES, StridedTable, Strides, fit_descriptors
from driver_layer.npu.memory import MemoryKind
from driver_layer.testing.blobs import (
    COLS,
    DEPTH,
    ROWS,
    dense_blob,
    dense_builder,
    is_expected,
    tile_symbol,
)
from driver_layer.testing.elf_builder import RawSection, write_elf

BASE = 0x8000_1000
INPUT, OUTPUT = Relocation.R_VPU_DMA_TASK_INPUT, Relocation.R_VPU_DMA_TASK_OUTPUT
INPUT_BIT, OUTPUT_BIT = Relocation.R_VPU_DMA_TASK_INPUT_BIT, Relocation.R_VPU_DMA_TASK_OUTPUT_BIT
SHAPE = (6, 2, 4)
"""Dimensions of an f32 tensor, innermost first; its dense strides are 1, 6 and 12."""

DIMS = [f"_{what}{number}" for what in ("dim", "stride") for number in range(1, 6)]
"""Ends of the names of a side's fields."""

CASES = [
    # tile, its begin, strides           begin, width, dimensions (size, stride); in bytes
    ((6, 2, 4), (), (), 0, 192, []),
    ((6, 2, 2), (), (), 0, 96, []),
    ((3, 2, 4), (3,), (), 12, 12, [(2, 24), (4, 48)]),
    ((6, 1, 4), (0, 1), (), 24, 24, [(4, 48)]),
    ((6, 2, 4), (), (1, 8, 16), 0, 24, [(2, 32), (4, 64)]),
    ((6, 2, 4), (), (1, 6, 20), 0, 48, [(4, 80)]),
    ((6, 2, 4), (), (2, 12, 24), 0, 4, [(6, 8), (2, 48), (4, 96)]),
    ((2, 2, 1), (4, 0, 3), (1, 8, 16), 4 * (4 + 48), 8, [(2, 32)]),
    ((6, 2, 4), (), (8, 4, 1), 0, 4, [(6, 32), (2, 16), (4, 4)]),
]


def entries(*rows: tuple[int, int, int]) -> np.ndarray:
    table = np.zeros(len(rows), RELA)
    for number, (offset, kind, symbol) in enumerate(rows):
        table[number] = (offset, symbol << 32 | kind, 0)
    return table


def patched(kind: Relocation, symbol: np.ndarray, strides: Strides = ()) -> np.ndarray:
    """Patch a descriptor that was full of ones before."""
    data = np.full(DMA_DESCRIPTOR.itemsize, 0xFF, np.uint8)
    table = StridedTable("rela.test", entries((0, kind, 0)), symbol, data.size)
    fit_descriptors(table, data, np.array([BASE], np.uint64), [strides])
    return data.view(DMA_DESCRIPTOR)[0]


def side_of(record: np.ndarray, side: str) -> tuple[int, int, list[tuple[int, int]]]:
    dims = [
        (int(record[f"{side}_dim{n}"]) + 1, int(record[f"{side}_stride{n}"])) for n in range(1, 6)
    ]
    begin = int(record[side])
    return begin - BASE, int(record[f"{side}_width"]), [dim for dim in dims if dim[0] > 1]


@pytest.mark.parametrize(("kind", "side"), [(INPUT, "src"), (OUTPUT, "dst")])
@pytest.mark.parametrize(("tile", "begin", "strides", "at", "width", "dims"), CASES)
def test_a_descriptor_gets_the_tile_in_the_given_strides(
    kind: Relocation, side: str, tile, begin, strides: Strides, at: int, width: int, dims
) -> None:
    record = patched(kind, tile_symbol(SHAPE, tile, begin), strides)
    assert side_of(record, side) == (at, width, dims)
    other = {"src": "dst", "dst": "src"}[side]
    written = {f"{side}{rest}" for rest in ("", "_width", *DIMS)}
    for name in DMA_DESCRIPTOR.names or ():
        if name not in written:
            ones = np.full(DMA_DESCRIPTOR[name].itemsize, 0xFF, np.uint8)
            assert record[name].tobytes() == ones.tobytes(), f"{name} is not of the {other} side"


@pytest.mark.parametrize(("kind", "side"), [(INPUT_BIT, "src"), (OUTPUT_BIT, "dst")])
def test_sizes_of_bit_relocations_are_in_bits(kind: Relocation, side: str) -> None:
    symbol = tile_symbol(SHAPE, begin=(2,))
    symbol["dma_shapes"][:, 0] = 4
    symbol["dma_size"] = 4
    assert side_of(patched(kind, symbol, (1, 10, 20)), side) == (1, 2, [(2, 5), (4, 10)])


def test_every_supported_type_has_a_case() -> None:
    assert set(SIDES) == {INPUT, OUTPUT, INPUT_BIT, OUTPUT_BIT}


def changed(**fields: object) -> np.ndarray:
    symbol = tile_symbol(SHAPE)
    for name, value in fields.items():
        symbol[name] = value
    return symbol


@pytest.mark.parametrize(
    ("kind", "symbol", "strides", "message"),
    [
        (INPUT, changed(dma_shapes=(2,) * 6), (2, 4, 8, 16, 32), "6 strided dimensions"),
        (INPUT, changed(), (1, 6, 2**31), r"dimension 1 of 4, 8589934592 bytes apart"),
        (INPUT, changed(dma_shapes=(2, 2, 2, 2**17, 1, 1)), (2, 4, 8, 16), "dimension 4 of 131072"),
        (INPUT, changed(dma_shapes=(2**31, 1, 1, 1, 1, 1)), (), "contiguous bytes"),
        (INPUT_BIT, changed(dma_size=4, dma_shapes=(3, 1, 1, 1, 1, 1)), (), "complete bytes"),
        (INPUT_BIT, changed(dma_size=4, tile_offsets=(1, 0, 0, 0, 0, 0)), (), "complete bytes"),
        (OUTPUT_BIT, changed(dma_size=4), (1, 7, 14), "complete bytes"),
    ],
)
def test_what_no_descriptor_can_express_is_rejected(
    kind: Relocation, symbol: np.ndarray, strides: Strides, message: str
) -> None:
    with pytest.raises(RelocError, match=message) as caught:
        patched(kind, symbol, strides)
    assert (caught.value.section, caught.value.offset) == ("rela.test", 0)


@pytest.mark.parametrize(
    ("row", "size", "message"),
    [
        ((1, INPUT, 0), 192, "outside the target's 192 bytes"),
        ((0, INPUT, 0), 191, "outside the target's 191 bytes"),
        ((0, INPUT, 0), 0, "outside the target's 0 bytes"),
        ((2**64 - 1, INPUT, 0), 400, "outside the target"),
        ((0, INPUT, 1), 192, "no DMA symbol of 1"),
        ((0, Relocation.R_VPU_64, 0), 192, "takes no DMA symbol"),
        ((0, 999, 0), 192, "takes no DMA symbol"),
    ],
)
def test_malformed_entries_are_rejected_with_their_offset(
    row: tuple[int, int, int], size: int, message: str
) -> None:
    rows = entries((0, INPUT, 0), row) if size >= 192 else entries(row)
    with pytest.raises(RelocError, match=message) as caught:
        StridedTable("rela.test", rows, tile_symbol(SHAPE), size)
    assert caught.value.offset == (len(rows) - 1) * RELA.itemsize


def spoiled(change: Callable[[list[RawSection]], None]) -> bytes:
    sections = dense_builder(strided=True).raw_sections()
    change(sections)
    return write_elf(sections)


def tables(sections: list[RawSection], kind: SectionType) -> list[RawSection]:
    return [section for section in sections if section.type == kind]


def tensor_that_does_not_exist(sections: list[RawSection]) -> None:
    table = tables(sections, SectionType.VPU_SHT_DMA_SYMBOLS)[1]
    table.data = b"\x01" + table.data[1:]


def half_a_symbol(sections: list[RawSection]) -> None:
    table = tables(sections, SectionType.VPU_SHT_DMA_SYMBOLS)[0]
    table.data = table.data[:-8]


def other_entries(sections: list[RawSection]) -> None:
    table = tables(sections, SectionType.VPU_SHT_DMA_SYMBOLS)[0]
    table.entsize = 72


def without_flags(sections: list[RawSection]) -> None:
    for rela in tables(sections, SectionType.SHT_RELA):
        if sections[rela.link].type == SectionType.VPU_SHT_DMA_SYMBOLS:
            rela.flags &= ~(SectionFlag.VPU_SHF_JIT | rela.flags & SectionFlag.VPU_SHF_USERINPUT)


def other_side(sections: list[RawSection]) -> None:
    links = [s for s in tables(sections, SectionType.SHT_RELA) if ".dma" in s.name]
    links[0].link, links[1].link = links[1].link, links[0].link


def a_symbol_table(sections: list[RawSection]) -> None:
    link = next(s for s in tables(sections, SectionType.SHT_RELA) if ".dma" in s.name)
    link.link = next(
        number for number, s in enumerate(sections) if s.name == "symtab.io.NetworkInput"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (tensor_that_does_not_exist, "DMA symbol 0 is of tensor 1 of 1"),
        (half_a_symbol, "136 bytes are not a multiple of an entry"),
        (other_entries, "entries of 72 bytes are not supported"),
        (without_flags, "the JIT flag is missing"),
        (other_side, "belongs to the other side"),
        (a_symbol_table, "no symbol 0 of 2"),
    ],
)
def test_a_malformed_blob_is_rejected(change, message: str) -> None:
    with pytest.raises(BlobError, match=message):
        HostParsedInference(spoiled(change), PLATFORMS["4000"])


class TestInference:
    def run(self, bench, inference: HostParsedInference, x: np.ndarray, *strides: Strides):
        """Run with x and y in memory of the given strides; return y."""
        places = [bench.space.allocate(4096, MemoryKind.DMA) for _ in strides]
        shapes = [(ROWS, DEPTH), (ROWS, COLS)]
        at_x, at_y = (
            np.lib.stride_tricks.as_strided(
                place.data.view(np.float32), shape, [4 * step for step in reversed(steps)]
            )
            for place, shape, steps in zip(places, shapes, strides, strict=True)
        )
        at_x[...] = x
        inference.apply_input_output(
            [places[0].address], [places[1].address], dict(enumerate(strides))
        )
        bench.device.prepare(bench.space, inference.address, inference.footprint())
        bench.device.run_inference(bench.space, inference.address)
        written = int(np.count_nonzero(places[1].data.view(np.float32)))
        assert written == np.count_nonzero(at_y), "written beside the tensor"
        return at_y

    def test_tensors_of_any_strides_are_read_and_written(self, bench, x) -> None:
        inference = bench.load(dense_blob(strided=True))
        assert [t.dynamic_strides for t in inference.metadata.inputs] == [True]
        for strides in (
            ((1, DEPTH), (1, COLS)),
            ((1, 3 * DEPTH), (1, COLS + 5)),
            ((3, 40), (2, 2 * COLS)),
            ((ROWS + 1, 1), (ROWS, 1)),
        ):
            assert is_expected(self.run(bench, inference, x, *strides), x), strides

    def test_the_strides_of_the_blob_return_without_strides(self, bench, x) -> None:
        inference = bench.load(dense_blob(strided=True))
        self.run(bench, inference, x, (1, 20), (1, 40))
        assert is_expected(bench.run(inference, x), x)

    def test_clones_with_other_strides_do_not_share_programs(self, bench, x) -> None:
        inference = bench.load(dense_blob(strided=True))
        twin = inference.clone()
        for one, strides in ((inference, ()), (twin, (1, 20)), (inference, (1, 12)), (twin, ())):
            y = self.run(bench, one, x, strides or (1, DEPTH), (1, COLS))
            assert is_expected(y, x)

    def test_strides_of_a_tensor_that_takes_none_are_rejected(self, bench) -> None:
        inference = bench.load(dense_blob())
        with pytest.raises(DriverUsageError, match="'y' takes no strides"):
            inference.apply_input_output([1 << 33], [1 << 34], {1: (1, 20)})

    def test_the_footprint_covers_the_strided_tensors(self, bench) -> None:
        inference = bench.load(dense_blob(strided=True))
        inference.apply_input_output([1 << 33], [1 << 34], {0: (2, 32)})
        spans = dict(inference.footprint().spans)
        assert spans[1 << 33] == 4 * ((DEPTH - 1) * 2 + (ROWS - 1) * 32 + 1)
        assert spans[1 << 34] == ROWS * COLS * 4


def test_a_symbol_has_the_size_of_the_public_record() -> None:
    assert DMA_SYMBOL.itemsize == 144
