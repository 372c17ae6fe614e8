"""Relocations against the runtime's symbol table, which only 3720 has."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer.abi.elf import RELA, VPU_RT_SYMTAB, SectionFlag, SectionType
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import RelocError
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.memory import AddressSpace
from driver_layer.testing.blobs import dense_builder
from driver_layer.testing.elf_builder import RawSection, write_elf

USER_IN, JIT = SectionFlag.VPU_SHF_USERINPUT, SectionFlag.VPU_SHF_JIT


def runtime_tables(platform: str) -> list[RawSection]:
    sections = dense_builder(platform).raw_sections()
    return [s for s in sections if s.type == SectionType.SHT_RELA and s.link == VPU_RT_SYMTAB]


def test_only_platforms_with_a_runtime_symbol_table_accept_relocations_against_it() -> None:
    assert runtime_tables("3720")
    assert not runtime_tables("4000")
    builder = dense_builder("3720")
    builder.arch, builder.platform = PLATFORMS["4000"].arch, "4000"
    with pytest.raises(RelocError, match="4000 has no symbol table of the runtime"):
        HostParsedInference(builder.build(), PLATFORMS["4000"])


@pytest.mark.parametrize(
    ("flags", "symbol", "message"),
    [
        (0, 1, "symbol 1 of the runtime's 8 is not supported"),
        (0, 2**31, "symbol 2147483648 of the runtime's 8"),
        (JIT | USER_IN, 0, "link to the runtime's symbol table"),
        (JIT, 0, "link to the runtime's symbol table"),
    ],
)
def test_relocations_against_the_runtime_may_only_use_the_workspace(
    flags: int, symbol: int, message: str
) -> None:
    sections = dense_builder("3720").raw_sections()
    rela = next(s for s in sections if s.link == VPU_RT_SYMTAB)
    table = np.frombuffer(bytearray(rela.data), RELA)
    table["r_info"] |= np.uint64(symbol << 32)
    rela.data, rela.flags = table.tobytes(), rela.flags | flags
    with pytest.raises(RelocError, match=message) as caught:
        HostParsedInference(write_elf(sections), PLATFORMS["3720"])
    assert caught.value.section == rela.name


def test_a_runtime_with_a_symbol_table_overrides_no_symbol_of_the_blob() -> None:
    builder = dense_builder("4000")
    builder.platform = "3720"
    inference = HostParsedInference(builder.build(), PLATFORMS["3720"])
    with pytest.raises(RelocError, match="has no address"):
        inference.load(AddressSpace())
