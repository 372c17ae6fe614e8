"""Writer of ELF64 files in the layout of the public NPU ELF library.

Section headers follow the ELF header, then come the contents. Section names and symbol names have
separate string tables. Equal input produces equal bytes.

Source: docs/reference/elf.md#file-header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driver_layer.abi.elf import (
    EHDR,
    ET_REL,
    IDENT,
    RELA,
    SHDR,
    SHN_UNDEF,
    STB_LOCAL,
    SYM,
    SectionFlag,
    SectionType,
    SymbolType,
)
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.notes import DIGEST_BYTES, encode_digest
from driver_layer.support.files import content_digest

Content = bytes | memoryview

NO_FLAGS = SectionFlag(0)


@dataclass(eq=False, slots=True)
class Section:
    """A section to write; ``size`` counts for sections without content in the file."""

    name: str
    type: SectionType
    flags: SectionFlag = NO_FLAGS
    content: Content = b""
    size: int = 0
    align: int = 64
    entsize: int = 0
    link: Section | int = 0
    info: Section | int = 0

    @property
    def stored(self) -> int:
        """Bytes in the file."""
        return 0 if self.type == SectionType.SHT_NOBITS else len(self.content)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol; ``section`` is None for an address that the caller supplies."""

    name: str
    type: SymbolType
    section: Section | None
    value: int = 0
    size: int = 0
    binding: int = STB_LOCAL


class _Strings:
    """A string table; equal strings are stored once."""

    def __init__(self) -> None:
        self._data = bytearray(b"\0")
        self._offsets = {"": 0}

    def add(self, text: str) -> int:
        """Store a string; return its offset."""
        if text not in self._offsets:
            self._offsets[text] = len(self._data)
            self._data += text.encode() + b"\0"
        return self._offsets[text]

    def content(self) -> bytes:
        """Return the table's bytes."""
        return bytes(self._data)


@dataclass(slots=True)
class ElfWriter:
    """Writer of sections, in the order in which they were added."""

    sections: list[Section] = field(default_factory=list[Section])

    def add(self, section: Section) -> Section:
        """Append a section."""
        self.sections.append(section)
        return section

    def write(
        self, symbol_tables: Sequence[tuple[Section, Sequence[Symbol]]], digest: Section
    ) -> bytes:
        """Return the file.

        Args:
            symbol_tables: symbols of each SYMTAB section, locals first. A symbol's index in the
                file is one higher than here, because the null symbol comes first.
            digest: the section whose content becomes the note of the file's digest.
        """
        names = Section(".strtab", SectionType.SHT_STRTAB, align=1)
        symbol_names = Section(".symstrtab", SectionType.SHT_STRTAB, align=1)
        null = Section("", SectionType.SHT_NULL, align=0)
        ordered = [null, names, symbol_names, *self.sections]
        index = {section: number for number, section in enumerate(ordered)}
        strings = _Strings()
        for table, symbols in symbol_tables:
            table.link = symbol_names
            table.info = 1 + sum(symbol.binding == STB_LOCAL for symbol in symbols)
            table.content = _symbols(symbols, strings, index)
        symbol_names.content = strings.content()
        section_names = _Strings()
        name_offsets = [section_names.add(section.name) for section in ordered]
        names.content = section_names.content()
        digest.content = encode_digest(bytes(DIGEST_BYTES))
        pieces = _assemble(ordered, name_offsets, index, names)
        place = next(number for number, each in enumerate(pieces) if each is digest.content)
        pieces[place] = encode_digest(content_digest(pieces))
        # Blobs may be large: their bytes are copied only once.
        return b"".join(pieces)


def _symbols(symbols: Sequence[Symbol], strings: _Strings, index: dict[Section, int]) -> bytes:
    table = np.zeros(1 + len(symbols), SYM)
    for number, symbol in enumerate(symbols, 1):
        table[number] = (
            strings.add(symbol.name),
            symbol.binding << 4 | symbol.type,
            0,
            SHN_UNDEF if symbol.section is None else index[symbol.section],
            symbol.value,
            symbol.size,
        )
    return table.tobytes()


def _assemble(
    sections: Sequence[Section],
    name_offsets: Sequence[int],
    index: dict[Section, int],
    names: Section,
) -> list[Content]:
    """Return the file as a list of contents; each section's content is one entry."""
    headers = np.zeros(len(sections), SHDR)
    offset = EHDR.itemsize + headers.nbytes
    contents: list[Content] = []
    for number, section in enumerate(sections):
        gap = -offset % section.align if section.stored else 0
        begin = offset + gap if section.stored else 0
        headers[number] = _header(section, name_offsets[number], begin, index)
        if section.stored:
            contents += [bytes(gap), section.content]
            offset += gap + section.stored
    return [_elf_header(len(sections), index[names]), headers.tobytes(), *contents]


def _header(section: Section, name: int, offset: int, index: dict[Section, int]) -> tuple[int, ...]:
    link, info = (
        index[each] if isinstance(each, Section) else each for each in (section.link, section.info)
    )
    return (
        name,
        section.type,
        section.flags,
        0,
        offset,
        section.size or len(section.content),
        link,
        info,
        section.align,
        section.entsize,
    )


def _elf_header(count: int, names: int) -> bytes:
    header = np.zeros(1, EHDR)
    header["e_ident"] = np.frombuffer(IDENT, "V16")
    header["e_type"] = ET_REL
    header["e_shoff"] = EHDR.itemsize
    header["e_ehsize"] = EHDR.itemsize
    header["e_shentsize"] = SHDR.itemsize
    header["e_shnum"] = count
    header["e_shstrndx"] = names
    return header.tobytes()


def relocation_table(columns: npt.NDArray[np.int64]) -> RecordArray:
    """Return RELA records for rows of offset, type, symbol index and addend."""
    table = np.zeros(len(columns), RELA)
    table["r_offset"] = columns[:, 0]
    table["r_info"] = columns[:, 2] << 32 | columns[:, 1]
    table["r_addend"] = columns[:, 3]
    return table
