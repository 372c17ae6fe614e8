"""The ELF dialect of NPU blobs: numbers and records.

A blob is an ELF64 little-endian relocatable file without program headers. All constants equal those
of the public NPU ELF library.

Source: openvinotoolkit/npu_compiler_elf (UD2025.44), docs/reference/elf.md#file-header,
docs/reference/elf.md#section-types, docs/reference/elf.md#section-flags,
docs/reference/elf.md#symbols, docs/reference/elf.md#relocations,
docs/reference/elf.md#dma-symbols, docs/reference/elf.md#section-names.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from driver_layer.abi.layout import record

EHDR = record(
    64,
    ("e_ident", 0, "V16"),
    ("e_type", 16, "<u2"),
    ("e_machine", 18, "<u2"),
    ("e_version", 20, "<u4"),
    ("e_entry", 24, "<u8"),
    ("e_phoff", 32, "<u8"),
    ("e_shoff", 40, "<u8"),
    ("e_flags", 48, "<u4"),
    ("e_ehsize", 52, "<u2"),
    ("e_phentsize", 54, "<u2"),
    ("e_phnum", 56, "<u2"),
    ("e_shentsize", 58, "<u2"),
    ("e_shnum", 60, "<u2"),
    ("e_shstrndx", 62, "<u2"),
)
"""The ELF header."""

SHDR = record(
    64,
    ("sh_name", 0, "<u4"),
    ("sh_type", 4, "<u4"),
    ("sh_flags", 8, "<u8"),
    ("sh_addr", 16, "<u8"),
    ("sh_offset", 24, "<u8"),
    ("sh_size", 32, "<u8"),
    ("sh_link", 40, "<u4"),
    ("sh_info", 44, "<u4"),
    ("sh_addralign", 48, "<u8"),
    ("sh_entsize", 56, "<u8"),
)
"""A section header."""

SYM = record(
    24,
    ("st_name", 0, "<u4"),
    ("st_info", 4, "u1"),
    ("st_other", 5, "u1"),
    ("st_shndx", 6, "<u2"),
    ("st_value", 8, "<u8"),
    ("st_size", 16, "<u8"),
)
"""A symbol."""

RELA = record(24, ("r_offset", 0, "<u8"), ("r_info", 8, "<u8"), ("r_addend", 16, "<i8"))
"""A relocation with addend; ``r_info`` is ``symbol << 32 | type``."""

DMA_DIMS = 6
"""Dimensions of a DMA symbol; unused ones, the outermost, have size 1."""

_DIMS = ("<u4", (DMA_DIMS,))

DMA_SYMBOL = record(
    144,
    ("io_index", 0, "<u4"),
    ("address", 8, "<u8"),
    ("shapes", 16, _DIMS),
    ("strides", 40, _DIMS),
    ("tile_offsets", 64, _DIMS),
    ("dma_shapes", 88, _DIMS),
    ("dma_strides", 112, _DIMS),
    ("dma_size", 136, "<u4"),
)
"""A tile of the caller's tensor ``io_index``, which one side of a transfer accesses.

Dimensions are innermost first, strides in elements of ``dma_size`` bytes (or bits). The strides of
the caller's tensor replace both ``strides`` and ``dma_strides``."""

IDENT = b"\x7fELF\x02\x01" + bytes(10)
"""``e_ident``: 64-bit, little-endian; EI_VERSION and OSABI are 0, as upstream writes them."""

ET_REL = 1
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00

VPU_RT_SYMTAB = 0xFF20
"""``sh_link`` of relocations against the runtime's symbol table, which is not in the blob."""

VPU_NNRD_SYM_NNCMX_SLICE_BASE_ADDR = 0
"""Index in the runtime's symbol table of the start address of the CMX workspace."""


class SectionType(IntEnum):
    """Section types: values of ``sh_type``."""

    SHT_NULL = 0
    SHT_PROGBITS = 1
    SHT_SYMTAB = 2
    SHT_STRTAB = 3
    SHT_RELA = 4
    SHT_HASH = 5
    SHT_DYNAMIC = 6
    SHT_NOTE = 7
    SHT_NOBITS = 8
    SHT_REL = 9
    SHT_SHLIB = 10
    SHT_DYNSYM = 11
    VPU_SHT_NETDESC = 0x8AAAAAAA
    VPU_SHT_PROF = 0x8AAAAAAB
    VPU_SHT_CMX_METADATA = 0x8AAAAAAC
    VPU_SHT_CMX_WORKSPACE = 0x8AAAAAAD
    VPU_SHT_PERF_METRICS = 0x8AAAAAAE
    VPU_SHT_PLATFORM_INFO = 0x8AAAAAAF
    VPU_SHT_COMPILER_HASH = 0x8AAAAAB0
    VPU_SHT_DMA_SYMBOLS = 0x8AAAAAB1
    VPU_SHT_COMPATIBILITY_STRING = 0x8AAAAAB2
    VPU_SHT_HPI = 0x8AAAAAB3


SHT_LOUSER = 0x80000000
SHT_HIUSER = 0xFFFFFFFF

REFUSED_SECTION_TYPES = frozenset(
    {
        SectionType.SHT_HASH,
        SectionType.SHT_DYNAMIC,
        SectionType.SHT_REL,
        SectionType.SHT_SHLIB,
        SectionType.SHT_DYNSYM,
    }
)
"""Section types that a blob must not contain."""


class SectionFlag(IntFlag):
    """Section flags: bits of ``sh_flags``."""

    SHF_WRITE = 0x1
    SHF_ALLOC = 0x2
    SHF_EXECINSTR = 0x4
    SHF_INFO_LINK = 0x40
    VPU_SHF_JIT = 0x100000
    VPU_SHF_USERINPUT = 0x200000
    VPU_SHF_USEROUTPUT = 0x400000
    VPU_SHF_PROFOUTPUT = 0x800000
    VPU_SHF_PROC_DPU = 0x10000000
    VPU_SHF_PROC_DMA = 0x20000000
    VPU_SHF_PROC_SHAVE = 0x40000000


USER_FLAGS = (
    SectionFlag.VPU_SHF_USERINPUT | SectionFlag.VPU_SHF_USEROUTPUT | SectionFlag.VPU_SHF_PROFOUTPUT
)
"""Flags that tie a section, symbol table or relocation section to the caller's buffers."""


class SymbolType(IntEnum):
    """Symbol types: the lower half of ``st_info``."""

    STT_NOTYPE = 0
    STT_OBJECT = 1
    STT_FUNC = 2
    STT_SECTION = 3
    STT_FILE = 4
    VPU_STT_ENTRY = 10
    VPU_STT_INPUT = 11
    VPU_STT_OUTPUT = 12


STB_LOCAL = 0
STB_GLOBAL = 1


class Relocation(IntEnum):
    """Relocation types; their effects are tables in ``loader.relocate`` and ``loader.strides``."""

    R_VPU_64 = 0
    R_VPU_64_OR = 1
    R_VPU_DISP40_RTM = 2
    R_VPU_64_LSHIFT = 3
    R_VPU_32 = 4
    R_VPU_32_RTM = 5
    R_VPU_32_SUM = 6
    R_VPU_32_MULTICAST_BASE = 7
    R_VPU_32_MULTICAST_BASE_SUB = 8
    R_VPU_DISP28_MULTICAST_OFFSET = 9
    R_VPU_DISP4_MULTICAST_OFFSET_CMP = 10
    R_VPU_LO_21 = 11
    R_VPU_LO_21_SUM = 12
    R_VPU_LO_21_MULTICAST_BASE = 13
    R_VPU_16_LSB_21_RSHIFT_5 = 14
    R_VPU_LO_21_RSHIFT_4 = 15
    R_VPU_CMX_LOCAL_RSHIFT_5 = 16
    R_VPU_32_BIT_OR_B21_B26_UNSET = 17
    R_VPU_64_BIT_OR_B21_B26_UNSET = 18
    R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_16 = 19
    R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_CUSTOM = 20
    R_VPU_32_BIT_OR_B21_B26_UNSET_HIGH_16 = 21
    R_VPU_32_BIT_OR_B21_B26_UNSET_LOW_16 = 22
    R_VPU_HIGH_27_BIT_OR = 23
    R_VPU_32_OR_LO_19_LSB_21_RSHIFT_2 = 24
    R_VPU_DMA_TASK_INPUT = 25
    R_VPU_DMA_TASK_OUTPUT = 26
    R_VPU_DMA_TASK_INPUT_BIT = 27
    R_VPU_DMA_TASK_OUTPUT_BIT = 28
    R_VPU_16_SUM = 1011
    R_VPU_64_MULT = 1012
    R_VPU_64_MULT_SUB = 1013
