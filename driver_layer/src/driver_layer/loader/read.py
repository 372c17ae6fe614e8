"""Reading the sections of a blob without copying the file.

pyelftools checks the ELF header; section headers are read as numpy records. The checks are stricter
than those of the public loader, which trusts offsets and indices of the file.

Source: docs/reference/elf.md#file-header, docs/reference/elf.md#section-types,
docs/reference/elf.md#unchecked-input (what upstream does not check).
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from driver_layer.abi import elf
from driver_layer.abi.elf import SectionFlag, SectionType
from driver_layer.abi.layout import Record, RecordArray, field_offset, read_text
from driver_layer.errors import HeaderError, SectionError

Buffer = bytes | bytearray | memoryview

_log = logging.getLogger(__name__)

_KNOWN_TYPES = frozenset(int(kind) for kind in SectionType)
_WITHOUT_DATA = frozenset(
    {
        SectionType.SHT_NULL,
        SectionType.SHT_NOBITS,
        SectionType.VPU_SHT_CMX_METADATA,
        SectionType.VPU_SHT_CMX_WORKSPACE,
    }
)
"""Section types without bytes in the file, whatever their size."""

_RECORDS: dict[int, Record] = {
    SectionType.SHT_SYMTAB: elf.SYM,
    SectionType.SHT_RELA: elf.RELA,
    SectionType.VPU_SHT_DMA_SYMBOLS: elf.DMA_SYMBOL,
}
_MAX_SECTIONS = 1 << 16


@dataclass(frozen=True, slots=True)
class Section:
    """A section; ``data`` is a view of the file, empty for types without data."""

    index: int
    name: str
    type: int
    flags: SectionFlag
    offset: int
    size: int
    align: int
    link: int
    info: int
    data: memoryview

    def has(self, flag: SectionFlag) -> bool:
        """Return whether any of the given flags is set."""
        return bool(self.flags & flag)

    def records(self, kind: Record) -> RecordArray:
        """Return the section's data as records, without a copy."""
        return np.frombuffer(self.data, kind)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Blob:
    """A blob's sections; index 0 is the null section."""

    sections: tuple[Section, ...]

    def of_type(self, kind: SectionType) -> list[Section]:
        """Return all sections of a type."""
        return [section for section in self.sections if section.type == kind]


def read_blob(data: Buffer) -> Blob:
    """Read a blob's sections.

    Args:
        data: the file; it must outlive the blob, whose sections are views of it.

    Raises:
        HeaderError: the file is not an ELF file in the dialect of blobs.
        SectionError: a section header is invalid.
    """
    view = memoryview(data).toreadonly().cast("B")
    _check_header(view)
    sections: list[Section] = []
    for index, (name, header) in enumerate(_headers(view)):
        section = _section(index, name, header, view)
        _check_section(section, header["sh_entsize"])
        sections.append(section)
    for section in sections:
        _check_links(section, sections)
    return Blob(tuple(sections))


def _check_header(view: memoryview) -> None:
    """Check the fields that pyelftools trusts, and the rules of this ELF dialect."""
    if len(view) < elf.EHDR.itemsize:
        raise HeaderError(f"{len(view)} bytes are too few for an ELF header", offset=0)
    header = np.frombuffer(view, elf.EHDR, 1)[0]
    ident = header["e_ident"].tobytes()
    if ident[:6] != elf.IDENT[:6]:
        raise HeaderError("not a 64-bit little-endian ELF file", offset=0)
    table, count = int(header["e_shoff"]), int(header["e_shnum"])
    names = int(header["e_shstrndx"])
    end = table + count * elf.SHDR.itemsize
    problems = (
        (header["e_type"] != elf.ET_REL, "e_type", "not a relocatable file"),
        (
            header["e_shentsize"] != elf.SHDR.itemsize,
            "e_shentsize",
            "section headers are not 64 bytes",
        ),
        (header["e_phnum"] != 0, "e_phnum", "a blob has no program headers"),
        (not 0 < count < _MAX_SECTIONS, "e_shnum", f"{count} is not a valid number of sections"),
        (table < elf.EHDR.itemsize, "e_shoff", "the section headers overlap the ELF header"),
        (end > len(view), "e_shoff", f"the section headers end at {end}, past {len(view)}"),
        (not 0 < names < count, "e_shstrndx", f"the name table has index {names} of {count}"),
    )
    for wrong, field, message in problems:
        if wrong:
            raise HeaderError(message, offset=field_offset(elf.EHDR, field))
    string_table = np.frombuffer(view, elf.SHDR, count, table)[names]
    offset, size = int(string_table["sh_offset"]), int(string_table["sh_size"])
    if offset + size > len(view) or not size or view[offset + size - 1]:
        raise HeaderError(
            f"the name table at {offset}, {size} bytes, is outside the file or not terminated",
            offset=table + names * elf.SHDR.itemsize,
        )
    name_offsets = np.frombuffer(view, elf.SHDR, count, table)["sh_name"]
    if int(name_offsets.max()) >= size:
        index = int(name_offsets.argmax())
        raise HeaderError(
            f"the name of section {index} is outside the name table",
            offset=table + index * elf.SHDR.itemsize,
        )


def _headers(view: memoryview) -> Iterator[tuple[str, dict[str, int]]]:
    """Iterate over the names and headers of all sections."""
    raw = np.frombuffer(view, elf.EHDR, 1)[0]
    table, count = int(raw["e_shoff"]), int(raw["e_shnum"])
    try:
        # pyelftools checks only that the file is ELF: it would build one parser object for each of
        # hundreds of section headers, which numpy reads as a table.
        ELFFile(io.BytesIO(view[: table + count * elf.SHDR.itemsize]))
    except (ELFError, ConstructError) as error:
        raise HeaderError(f"pyelftools cannot read the header: {error}") from error
    rows = np.frombuffer(view, elf.SHDR, count, table)
    fields, values = rows.dtype.names or (), rows.tolist()
    headers: list[dict[str, int]] = [dict(zip(fields, row, strict=True)) for row in values]
    names = headers[int(raw["e_shstrndx"])]
    strings = bytes(view[names["sh_offset"] : names["sh_offset"] + names["sh_size"]])
    for header in headers:
        yield read_text(strings[header["sh_name"] :]), header


def _section(index: int, name: str, header: dict[str, int], view: memoryview) -> Section:
    kind, offset, size = header["sh_type"], header["sh_offset"], header["sh_size"]
    label = name or f"#{index}"
    if kind in _WITHOUT_DATA:
        data = view[:0]
    elif offset + size > len(view):
        raise SectionError(f"{size} bytes extend past the file's {len(view)}", label, offset)
    else:
        data = view[offset : offset + size]
    return Section(
        index,
        label,
        kind,
        SectionFlag(header["sh_flags"]),
        offset,
        size,
        header["sh_addralign"],
        header["sh_link"],
        header["sh_info"],
        data,
    )


def _check_section(section: Section, entry_size: int) -> None:
    if section.type in elf.REFUSED_SECTION_TYPES:
        raise SectionError(f"type {section.type} is not allowed in a blob", section.name, 0)
    if section.type not in _KNOWN_TYPES:
        if not elf.SHT_LOUSER <= section.type <= elf.SHT_HIUSER:
            raise SectionError(f"unknown type {section.type:#x}", section.name, 0)
        _log.warning("section %s has unknown type %#x", section.name, section.type)
    if section.type != SectionType.SHT_NULL and (
        section.align == 0 or section.align & (section.align - 1)
    ):
        raise SectionError(f"alignment {section.align} is not a power of two", section.name, 0)
    kind = _RECORDS.get(section.type)
    if kind is not None:
        if entry_size != kind.itemsize:
            raise SectionError(f"entries of {entry_size} bytes are not supported", section.name, 0)
        if section.size % kind.itemsize:
            raise SectionError(
                f"{section.size} bytes are not a multiple of an entry", section.name, section.size
            )
    elif entry_size and section.size % entry_size:
        raise SectionError(
            f"{section.size} bytes are not a multiple of {entry_size}", section.name, section.size
        )


def _check_links(section: Section, sections: list[Section]) -> None:
    """Check that tables refer to sections of the right type."""
    wanted: tuple[SectionType, ...]
    if section.type == SectionType.SHT_SYMTAB:
        wanted, what = (SectionType.SHT_STRTAB,), "string table"
    elif section.type == SectionType.SHT_RELA:
        wanted = (SectionType.SHT_SYMTAB, SectionType.VPU_SHT_DMA_SYMBOLS)
        what = "symbol table"
        if not 0 < section.info < len(sections):
            raise SectionError(f"target section {section.info} does not exist", section.name, 0)
        if section.link == elf.VPU_RT_SYMTAB:
            return
    else:
        return
    if section.link >= len(sections) or sections[section.link].type not in wanted:
        raise SectionError(f"section {section.link} is not its {what}", section.name, 0)
