"""DMA symbols of tiles, against the relocations that the driver makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.emit.dma import descriptor
from compiler_layer.emit.elf import ElfWriter, Section
from compiler_layer.emit.tiles import TileTable
from compiler_layer.errors import UnsupportedModel
from compiler_layer.schedule.tasks import Transfer
from compiler_layer.schedule.views import Buffer, Space, View
from driver_layer.abi.elf import DMA_SYMBOL, RELA, Relocation, SectionFlag
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.tasks import DMA_DESCRIPTOR, DmaCfg
from driver_layer.loader.strides import StridedTable, fit_descriptors


def tensor(shape: tuple[int, ...], element: str = "f16") -> View:
    size = math.prod(shape) * np.dtype(np.float16 if element == "f16" else np.float32).itemsize
    return View.dense(Buffer("x", Space.INPUT, size, index=3, strided=True), element, shape)


def symbols(*tiles: View) -> RecordArray:
    table = TileTable("symtab", SectionFlag(0))
    assert [table.number(tile) for tile in tiles] == list(range(len(tiles)))
    section = table.add_to(ElfWriter())
    assert isinstance(section, Section)
    return np.frombuffer(section.content, DMA_SYMBOL)


def addresses(tile: View, strides: tuple[int, ...]) -> list[int]:
    """Return the addresses that a relocated descriptor reads, in order; strides in elements."""
    data = np.zeros(DMA_DESCRIPTOR.itemsize, np.uint8)
    entry = np.array([(0, int(Relocation.R_VPU_DMA_TASK_INPUT), 0)], RELA)
    bases, given_strides = np.zeros(4, np.uint64), [(), (), (), strides]
    fit_descriptors(
        StridedTable("rela", entry, symbols(tile), data.size), data, bases, given_strides
    )
    record = data.view(DMA_DESCRIPTOR)[0]
    places = np.array([int(record["src"])])
    for number in range(5, 0, -1):
        count, step = int(record[f"src_dim{number}"]) + 1, int(record[f"src_stride{number}"])
        places = (places[:, None] + step * np.arange(count)).reshape(-1)
    return (places[:, None] + np.arange(int(record["src_width"]))).reshape(-1).tolist()


@given(st.data())
def test_a_tile_is_found_in_a_tensor_of_any_strides(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=5)))
    begin = [data.draw(st.integers(0, size - 1)) for size in shape]
    sizes = tuple(
        data.draw(st.integers(1, size - at)) for size, at in zip(shape, begin, strict=True)
    )
    tile = tensor(shape).block(begin, sizes)
    steps = data.draw(st.lists(st.integers(1, 100), min_size=len(shape), max_size=len(shape)))
    index = np.indices(sizes).reshape(len(shape), math.prod(sizes))
    places = sum(
        (step * (at + row) for step, at, row in zip(steps, begin, index, strict=True)),
        np.zeros(math.prod(sizes), int),
    )
    expected = (2 * places[:, None] + np.arange(2)).reshape(-1).tolist()
    assert addresses(tile, tuple(reversed(steps))) == expected


def test_a_symbol_has_the_tensors_own_strides_for_callers_without_any() -> None:
    (symbol,) = symbols(tensor((2, 3, 4), "f32").block((1, 0, 2), (1, 3, 2)))
    assert (symbol["io_index"], symbol["dma_size"]) == (3, 4)
    assert symbol["shapes"].tolist() == [4, 3, 2, 1, 1, 1]
    assert symbol["strides"].tolist() == symbol["dma_strides"].tolist() == [1, 4, 12, 0, 0, 0]
    assert symbol["tile_offsets"].tolist() == [2, 0, 1, 0, 0, 0]
    assert symbol["dma_shapes"].tolist() == [2, 3, 1, 1, 1, 1]


def test_a_descriptor_has_all_dimensions_as_relocations_do_not_change_their_number() -> None:
    tile = tensor((2, 4))
    dense = View.dense(Buffer("copy", Space.SCRATCH, 16), "f16", (2, 4))
    for source, target, used in ((tile, dense, 5), (dense, tile, 5), (dense, dense, 0)):
        assert descriptor(Transfer(source, target, ()))["cfg"] & DmaCfg.NUM_DIM == used


def test_arguments_that_no_strides_fit_are_rejected_by_name() -> None:
    with pytest.raises(UnsupportedModel, match="'x' has 6 dimensions"):
        symbols(tensor((1,) * 6))
    tile = tensor(((1 << 16) + 1, 2, 2))
    dense = View.dense(Buffer("copy", Space.SCRATCH, tile.nbytes), "f16", tile.shape)
    with pytest.raises(UnsupportedModel, match="a transfer of"):
        descriptor(Transfer(tile, dense, ()))


def test_no_table_is_written_without_tiles() -> None:
    assert TileTable("symtab", SectionFlag(0)).add_to(ElfWriter()) == 0
