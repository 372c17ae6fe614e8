"""Each relocation type against its formula, computed by hand for one word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.elf import RELA, Relocation
from driver_layer.errors import RelocError
from driver_layer.loader.relocate import RECIPES, RelocationTable, apply
from driver_layer.loader.strides import SIDES

S, Z = 0x4021_8000, 0x100
DDR = 0x2_1234_5678

CASES = [
    # type                              word                 symbol  addend  expected
    ("R_VPU_64", 0xDEAD, DDR, 0x10, DDR + 0x10),
    ("R_VPU_64_OR", 0x1, DDR, 0x10, 0x1 | (DDR + 0x10)),
    ("R_VPU_DISP40_RTM", 0x203, S, 0x40, 0x203 | (S + 0x40 * 3)),
    ("R_VPU_64_LSHIFT", 0x3, 4, 0, 0x30),
    ("R_VPU_32", 0xDEAD, S, 8, S + 8),
    ("R_VPU_32_RTM", 0x205, S, 0x40, S + 0x40 * 5),
    ("R_VPU_32_SUM", 7, S, 8, S + 15),
    ("R_VPU_32_MULTICAST_BASE", 0, 0x40C0_0000, 0, 0x4000_0000),
    ("R_VPU_32_MULTICAST_BASE", 0, 0x4040_0000, 0, 0x4020_0000),
    ("R_VPU_32_MULTICAST_BASE_SUB", 0x100, 0x4080_0000, 0, 0x4010_0000 - 0x100),
    ("R_VPU_DISP28_MULTICAST_OFFSET", 0x1F, 0x40C0_0000, 0, 0xF | (0x20000 * 2) << 4),
    ("R_VPU_DISP4_MULTICAST_OFFSET_CMP", 0xF0, 0x40C0_0000, 0, 0xF1),
    ("R_VPU_LO_21", 0xFFE0_0000, S, 0x20, 0xFFE0_0000 | 0x18020),
    ("R_VPU_LO_21_SUM", 0x4020_0000, S, 0x20, 0x4021_8020),
    ("R_VPU_LO_21_MULTICAST_BASE", 0, 0x40DF_FFF0, 0, 0x1F_FFF0),
    ("R_VPU_16_LSB_21_RSHIFT_5", 0xABCD_0000, S, 0x20, 0xABCD_0000 | 0x18020 >> 5),
    ("R_VPU_LO_21_RSHIFT_4", 0xFFE0_0000, S, 0x20, 0xFFE0_0000 | 0x18020 >> 4),
    ("R_VPU_CMX_LOCAL_RSHIFT_5", 0, S, 0x20, (0x4001_8020) >> 5),
    ("R_VPU_32_BIT_OR_B21_B26_UNSET", 0x0060_0000, S, 0, 0x0060_0000 | 0x4001_8000),
    ("R_VPU_64_BIT_OR_B21_B26_UNSET", 0x20_0000, S, 8, 0x20_0000 | 0x4001_8008),
    ("R_VPU_64_BIT_OR_B21_B26_UNSET", 0, DDR, 0, DDR & 0xF81F_FFFF),
    ("R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_16", 0x1234, S, 0x20, (0x18020 >> 5) << 16 | 0x1234),
    (
        "R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_CUSTOM",
        0xFFFF_FFFF,
        S,
        0x20,
        (0xFFFF_FFFF & ~0xFFFE_4000) | (0xC01 & ~1) << 16 | 1 << 14,
    ),
    ("R_VPU_32_BIT_OR_B21_B26_UNSET_HIGH_16", 0x1, S, 0, 0x4001),
    ("R_VPU_32_BIT_OR_B21_B26_UNSET_LOW_16", 0x1, S, 0, 0x8001),
    ("R_VPU_HIGH_27_BIT_OR", 0x5, S, 0, 0x5 | (0x4001_8000 >> 4) << 37),
    ("R_VPU_32_OR_LO_19_LSB_21_RSHIFT_2", 0xFFF8_0000, S, 0x20, 0xFFF8_0000 | 0x18020 >> 2),
    ("R_VPU_16_SUM", 0xFFFF, 1, 1, 1),
    ("R_VPU_64_MULT", 3, 5, 0, 15),
    ("R_VPU_64_MULT_SUB", 3, 5, 9, 12),
]


def entries(*rows: tuple[int, int, int, int]) -> np.ndarray:
    table = np.zeros(len(rows), RELA)
    for number, (offset, kind, symbol, addend) in enumerate(rows):
        table[number] = (offset, symbol << 32 | kind, addend)
    return table


def patch(data: np.ndarray, *rows: tuple[int, int, int, int], symbol: int = S) -> None:
    table = RelocationTable("rela.test", entries(*rows), data.size)
    apply(table, data, np.array([0, symbol], np.uint64), np.array([0, Z], np.uint64))


@pytest.mark.parametrize(("name", "word", "symbol", "addend", "expected"), CASES)
def test_a_relocation_computes_its_formula(
    name: str, word: int, symbol: int, addend: int, expected: int
) -> None:
    kind = Relocation[name]
    width = RECIPES[kind][0]
    data = np.frombuffer((word % 2 ** (8 * width)).to_bytes(16, "little"), np.uint8).copy()
    patch(data, (0, kind, 1, addend), symbol=symbol)
    assert int.from_bytes(data[:width].tobytes(), "little") == expected % 2 ** (8 * width)
    assert not data[width:].any(), "the relocation wrote beyond its word"


def test_every_supported_type_has_a_case() -> None:
    assert {Relocation[case[0]] for case in CASES} == set(RECIPES)


def test_every_type_patches_words_or_descriptors() -> None:
    assert {*RECIPES, *SIDES} == {*Relocation}


def test_relocations_of_descriptors_need_dma_symbols() -> None:
    with pytest.raises(RelocError, match="R_VPU_DMA_TASK_INPUT needs a table of DMA symbols"):
        RelocationTable("rela.test", entries((0, Relocation.R_VPU_DMA_TASK_INPUT, 1, 0)), 64)


def test_an_unknown_type_is_rejected_with_its_offset() -> None:
    with pytest.raises(RelocError, match="unknown type 999") as caught:
        RelocationTable("rela.test", entries((0, 0, 1, 0), (8, 999, 1, 0)), 64)
    assert (caught.value.section, caught.value.offset) == ("rela.test", RELA.itemsize)


@pytest.mark.parametrize("offset", [57, 64, 2**63, 2**64 - 4])
def test_all_bytes_of_a_word_must_be_inside_the_target(offset: int) -> None:
    with pytest.raises(RelocError, match="outside the target"):
        RelocationTable("rela.test", entries((offset, Relocation.R_VPU_64, 1, 0)), 64)


def test_a_multicast_index_is_checked() -> None:
    with pytest.raises(RelocError, match="multicast index 3"):
        patch(np.full(4, 3, np.uint8), (0, Relocation.R_VPU_DISP4_MULTICAST_OFFSET_CMP, 1, 0))


def test_relocations_of_one_word_are_applied_in_table_order() -> None:
    data = np.zeros(8, np.uint8)
    patch(data, (0, Relocation.R_VPU_32, 1, 0), (0, Relocation.R_VPU_32_SUM, 1, 1))
    assert int(data[:4].view("<u4")[0]) == (2 * S + 1) % 2**32


kinds = st.sampled_from([Relocation.R_VPU_64, Relocation.R_VPU_LO_21, Relocation.R_VPU_32_SUM])


@given(st.lists(st.tuples(st.integers(0, 56), kinds, st.just(1), st.integers(0, 99)), max_size=12))
def test_patching_in_groups_equals_single_patching(rows: list[tuple[int, int, int, int]]) -> None:
    together = np.arange(64, dtype=np.uint8)
    alone = together.copy()
    patch(together, *rows)
    for row in rows:
        patch(alone, row)
    assert np.array_equal(together, alone)
