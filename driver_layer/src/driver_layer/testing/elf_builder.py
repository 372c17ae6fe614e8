"""Builder of blobs, valid or deliberately invalid, section by section.

The builder does not use the compiler, so the driver can be tested alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from driver_layer.abi import elf, notes
from driver_layer.abi import metadata as abi
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.elf import SectionFlag, SectionType, SymbolType
from driver_layer.abi.layout import RecordArray, filled
from driver_layer.abi.platforms import PLATFORMS

NO_FLAGS = SectionFlag(0)

RUNTIME_CMX = -1
"""Placeholder for the symbol of the runtime's table: the CMX workspace."""


@dataclass(slots=True)
class RawSection:
    """A section header's fields and the section's content; tests change them to be invalid."""

    name: str
    type: int
    flags: int = 0
    data: bytes = b""
    size: int = 0
    align: int = 64
    link: int = 0
    info: int = 0
    entsize: int = 0


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the blob."""

    name: str
    element: str
    shape: tuple[int, ...]
    dynamic_strides: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes of the dense tensor."""
        return int(np.prod(self.shape)) * ELEMENT_TYPES[self.element].storage.itemsize


@dataclass(slots=True)
class BlobBuilder:
    """Parts of a blob; ``build`` may be called again after changes."""

    platform: str = "4000"
    arch: int = -1
    loader_version: notes.Version | None = None
    """None, here and below, is the platform's version."""
    inference_version: notes.Version | None = None
    tile_count: int = 1
    inputs: list[Port] = field(default_factory=list[Port])
    outputs: list[Port] = field(default_factory=list[Port])
    sections: list[RawSection] = field(default_factory=list[RawSection])
    symbols: list[tuple[int, int, int, int]] = field(
        default_factory=list[tuple[int, int, int, int]]
    )
    """Type, section index, value and size, from index 1."""

    relocations: dict[tuple[int, int, str], list[tuple[int, int, int, int]]] = field(
        default_factory=dict[tuple[int, int, str], list[tuple[int, int, int, int]]]
    )
    """Offset, type, symbol and addend, by target section, user flags and table of symbols: the
    blob's or the user's (""), the runtime's (".runtime"), or DMA symbols (".dma")."""

    dma_symbols: dict[int, list[RecordArray]] = field(default_factory=dict[int, list[RecordArray]])
    """DMA symbols by user flags."""

    def add(
        self,
        name: str,
        content: bytes | RecordArray = b"",
        flags: SectionFlag = SectionFlag.SHF_ALLOC,
        kind: SectionType = SectionType.SHT_PROGBITS,
        size: int = 0,
        align: int = 64,
    ) -> int:
        """Add a section; return its index in the file."""
        data = content if isinstance(content, bytes) else content.tobytes()
        self.sections.append(RawSection(name, kind, flags, data, size or len(data), align))
        return _FIRST + len(self.sections) - 1

    def symbol(
        self, section: int, value: int = 0, size: int = 0, kind: int = SymbolType.STT_SECTION
    ) -> int:
        """Add a symbol; return its index."""
        self.symbols.append((kind, section, value, size))
        return len(self.symbols)

    def relocate(
        self,
        target: int,
        offset: int,
        kind: int,
        symbol: int,
        addend: int = 0,
        user: SectionFlag = NO_FLAGS,
    ) -> None:
        """Add a relocation; with ``user`` set, ``symbol`` is the number of an input or output."""
        runtime = symbol == RUNTIME_CMX
        if runtime:
            symbol = elf.VPU_NNRD_SYM_NNCMX_SLICE_BASE_ADDR
        entry = (offset, kind, symbol, addend)
        key = (target, int(user), ".runtime" if runtime else "")
        self.relocations.setdefault(key, []).append(entry)

    def relocate_tile(
        self, target: int, offset: int, kind: int, symbol: RecordArray, user: SectionFlag
    ) -> None:
        """Add a relocation of a DMA descriptor for a tile of an input or output."""
        symbols = self.dma_symbols.setdefault(user, [])
        symbols.append(symbol)
        entry = (offset, kind, len(symbols) - 1, 0)
        self.relocations.setdefault((target, int(user), ".dma"), []).append(entry)

    def build(self) -> bytes:
        """Return the content of the file."""
        return write_elf(self.raw_sections())

    def raw_sections(self) -> list[RawSection]:
        """Return all sections in file order; tests may corrupt them before ``write_elf``."""
        placeholders: list[RawSection] = []
        tables: list[RawSection] = []
        index = _FIRST + len(self.sections)
        sides = (
            ("Input", SectionFlag.VPU_SHF_USERINPUT, self.inputs),
            ("Output", SectionFlag.VPU_SHF_USEROUTPUT, self.outputs),
        )
        for name, flag, ports in sides:
            rows: list[tuple[int, int, int, int]] = []
            for number, port in enumerate(ports):
                rows.append((SymbolType.STT_OBJECT, index + len(placeholders), 0, port.nbytes))
                flags = flag | SectionFlag.SHF_WRITE | SectionFlag.SHF_ALLOC
                kind = SectionType.SHT_NOBITS
                section = RawSection(f"io.Network{name}{number}", kind, flags, b"", port.nbytes, 1)
                placeholders.append(section)
            tables.append(_symtab(f"symtab.io.Network{name}", flag | SectionFlag.VPU_SHF_JIT, rows))
        tables.append(_symtab("symtab", NO_FLAGS, self.symbols))
        first_table = index + len(placeholders)
        symtab_of: dict[tuple[int, str], int] = {
            (SectionFlag.VPU_SHF_USERINPUT, ""): first_table,
            (SectionFlag.VPU_SHF_USEROUTPUT, ""): first_table + 1,
            (NO_FLAGS, ""): first_table + 2,
            (NO_FLAGS, ".runtime"): elf.VPU_RT_SYMTAB,
        }
        for user, symbols in self.dma_symbols.items():
            symtab_of[user, ".dma"] = first_table + len(tables)
            tables.append(_dma_symbols(user, symbols))
        relas = [
            _rela(f"rela.{target}.{user:x}{table}", target, user, symtab_of[user, table], entries)
            for (target, user, table), entries in self.relocations.items()
        ]
        return [*self._head(), *self.sections, *placeholders, *tables, *relas]

    def _head(self) -> list[RawSection]:
        platform = PLATFORMS[self.platform]
        arch = platform.arch if self.arch < 0 else self.arch
        info = filled(abi.PLATFORM_INFO, arch_kind=arch)
        note = SectionType.SHT_NOTE
        loader = notes.encode_note(
            notes.NT_LOADER_ABI_VERSION, self.loader_version or platform.loader_abi
        )
        inference = notes.encode_note(
            notes.NT_MAPPED_INFERENCE_VERSION, self.inference_version or platform.mapped_inference
        )
        return [
            RawSection("", SectionType.SHT_NULL, align=0),
            RawSection(".strtab", SectionType.SHT_STRTAB, align=1),
            RawSection(".symstrtab", SectionType.SHT_STRTAB, data=b"\0", align=1),
            RawSection("note.LoaderABIVersion", note, data=loader, align=4),
            RawSection("note.MappedInferenceVersion", note, data=inference, align=4),
            RawSection(
                "meta.PlatformInfo",
                SectionType.VPU_SHT_PLATFORM_INFO,
                data=abi.encode_container([info]),
            ),
            RawSection("MetadataSection", SectionType.VPU_SHT_NETDESC, data=self._metadata()),
        ]

    def _metadata(self) -> bytes:
        arrays = {name: np.zeros(0, kind) for name, kind in abi.NETWORK_METADATA}
        arrays["identification"] = filled(abi.IDENTIFICATION, blob_name=b"handmade")
        arrays["resource_requirements"] = filled(
            abi.RESOURCE_REQUIREMENTS,
            slice_length=PLATFORMS[self.platform].workspace_bytes,
            tile_count=self.tile_count,
        )
        for side, ports in (("in", self.inputs), ("out", self.outputs)):
            arrays[f"net_{side}puts"] = _tensor_refs(ports)
            arrays[f"{side}_tensor_descriptors"] = _tensor_refs(ports)
        return abi.encode_container([arrays[name] for name, _ in abi.NETWORK_METADATA])


_FIRST = 7
"""Index of the first section that a caller adds."""


def _tensor_refs(ports: Sequence[Port]) -> RecordArray:
    refs = np.zeros(len(ports), abi.TENSOR_REF)
    for ref, port in zip(refs, ports, strict=True):
        ref["name"] = port.name.encode()
        ref["data_type"] = ELEMENT_TYPES[port.element].code
        ref["dims"][: len(port.shape)] = port.shape
        ref["dimensions_size"] = len(port.shape)
        ref["order"] = abi.ORDER_BY_RANK.get(len(port.shape), 0)
        ref["flags"] = abi.DYNAMIC_STRIDES if port.dynamic_strides else 0
    return refs


def _symtab(name: str, flags: int, rows: Sequence[tuple[int, int, int, int]]) -> RawSection:
    table = np.zeros(1 + len(rows), elf.SYM)
    for number, (kind, section, value, size) in enumerate(rows, 1):
        table[number] = (0, elf.STB_GLOBAL << 4 | kind, 0, section, value, size)
    return _table(name, SectionType.SHT_SYMTAB, flags, table, link=2, info=1)


def _dma_symbols(user: int, symbols: Sequence[RecordArray]) -> RawSection:
    flags = user | SectionFlag.VPU_SHF_JIT
    table = np.frombuffer(b"".join(symbol.tobytes() for symbol in symbols), elf.DMA_SYMBOL)
    return _table(f"symtab.dma.{user:x}", SectionType.VPU_SHT_DMA_SYMBOLS, flags, table)


def _rela(
    name: str,
    target: int,
    user: int,
    symtab: int,
    entries: Sequence[tuple[int, int, int, int]],
) -> RawSection:
    table = np.zeros(len(entries), elf.RELA)
    for number, (offset, kind, symbol, addend) in enumerate(entries):
        table[number] = (offset, symbol << 32 | kind, addend)
    flags = user | SectionFlag.SHF_INFO_LINK | (SectionFlag.VPU_SHF_JIT if user else NO_FLAGS)
    return _table(name, SectionType.SHT_RELA, flags, table, link=symtab, info=target)


def _table(
    name: str, kind: SectionType, flags: int, table: RecordArray, link: int = 0, info: int = 0
) -> RawSection:
    """Return a section of records."""
    entsize = table.dtype.itemsize
    return RawSection(name, kind, flags, table.tobytes(), 0, 8, link, info, entsize)


def write_elf(sections: Sequence[RawSection]) -> bytes:
    """Return an ELF file of the sections; the second one becomes the table of their names."""
    names = bytearray()
    headers = np.zeros(len(sections), elf.SHDR)
    for header, section in zip(headers, sections, strict=True):
        header["sh_name"] = len(names)
        names += section.name.encode() + b"\0"
    offset = elf.EHDR.itemsize + headers.nbytes
    body = bytearray()
    for number, (header, section) in enumerate(zip(headers, sections, strict=True)):
        data = bytes(names) if number == 1 else section.data
        if data:
            body += bytes(-(offset + len(body)) % max(section.align, 1))
            header["sh_offset"] = offset + len(body)
        header["sh_type"] = section.type
        header["sh_flags"] = section.flags
        header["sh_size"] = len(names) if number == 1 else max(section.size, len(data))
        header["sh_link"], header["sh_info"] = section.link, section.info
        header["sh_addralign"], header["sh_entsize"] = section.align, section.entsize
        body += data
    ehdr = filled(
        elf.EHDR,
        e_ident=np.void(elf.IDENT),
        e_type=elf.ET_REL,
        e_shoff=elf.EHDR.itemsize,
        e_ehsize=elf.EHDR.itemsize,
        e_shentsize=elf.SHDR.itemsize,
        e_shnum=len(sections),
        e_shstrndx=1,
    )
    return ehdr.tobytes() + headers.tobytes() + bytes(body)
