"""Symbolic names of addresses in a blob, derived from its relocations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from driver_layer.abi import elf
from driver_layer.abi.elf import SectionFlag, SectionType
from driver_layer.abi.layout import field_offset, read_text
from driver_layer.abi.platforms import TILE_SELECT_SHIFT
from driver_layer.abi.tasks import DMA_DESCRIPTOR
from driver_layer.loader.metadata import read_network
from driver_layer.loader.read import Blob, Section
from driver_layer.loader.strides import SIDES

_PATCHED_ADDRESS: dict[int, int] = {
    kind: field_offset(DMA_DESCRIPTOR, side) for kind, (side, _) in SIDES.items()
}
"""Offset of the address in what a relocation patches, if it is not the first word."""


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a relocation; ``section`` is None for a user's buffer."""

    name: str
    section: Section | None
    addend: int

    def text(self, word: int = 0) -> str:
        """Return the target's text; the tile bits of the patched word select the tiles of CMX."""
        if self.section is not None and self.section.type == SectionType.VPU_SHT_CMX_WORKSPACE:
            tiles = [t for t in range(6) if word >> (TILE_SELECT_SHIFT + t) & 1]
            return f"CMX{tiles or ''}+{self.addend:#x}".replace(" ", "")
        return f"{self.name}+{self.addend:#x}" if self.addend else self.name


@dataclass(frozen=True, slots=True)
class RelocationText:
    """A relocation with its symbolic target."""

    offset: int
    type: int
    target: Target


def symbol_names(blob: Blob, table: Section) -> list[str]:
    """Return the names of a table's symbols; a symbol without a name gets that of its section."""
    strings = bytes(blob.sections[table.link].data)
    names: list[str] = []
    for record in table.records(elf.SYM):
        name = read_text(strings[int(record["st_name"]) :])
        home = int(record["st_shndx"])
        if not name and home < len(blob.sections):
            name = blob.sections[home].name
        names.append(name)
    return names


def relocations(blob: Blob, section: Section) -> Iterator[RelocationText]:
    """Iterate over the entries of a relocation section."""
    target = _targets(blob, section)
    for entry in section.records(elf.RELA):
        index, kind = int(entry["r_info"]) >> 32, int(entry["r_info"]) & 0xFFFFFFFF
        yield RelocationText(int(entry["r_offset"]), kind, target(index, int(entry["r_addend"])))


def _targets(blob: Blob, section: Section) -> Callable[[int, int], Target]:
    """Return a function of symbol index and addend that returns the target of an entry."""
    if section.link == elf.VPU_RT_SYMTAB:  # all symbols of the runtime are of CMX
        home = next(iter(blob.of_type(SectionType.VPU_SHT_CMX_WORKSPACE)), None)
        return lambda _, addend: Target("CMX", home, addend)
    table = blob.sections[section.link]
    if table.type == SectionType.VPU_SHT_DMA_SYMBOLS:
        return _tiles(blob, section, table)
    names, records = symbol_names(blob, table), table.records(elf.SYM)

    def symbol(index: int, addend: int) -> Target:
        if index >= len(names):
            return Target("?", None, addend)
        found = int(records[index]["st_shndx"])
        home = blob.sections[found] if found < len(blob.sections) else None
        return Target(_user_prefix(section) + names[index], home, addend)

    return symbol


def _tiles(blob: Blob, section: Section, table: Section) -> Callable[[int, int], Target]:
    """Return the targets of relocations of DMA descriptors: tiles of users' tensors."""
    network, symbols = read_network(blob), table.records(elf.DMA_SYMBOL)
    tensors = network.inputs if section.has(SectionFlag.VPU_SHF_USERINPUT) else network.outputs

    def tile(index: int, _: int) -> Target:
        if index >= len(symbols) or int(symbols[index]["io_index"]) >= len(tensors):
            return Target("?", None, 0)
        tensor = tensors[int(symbols[index]["io_index"])]
        begin = symbols[index]["tile_offsets"].tolist()[: len(tensor.shape)]
        name = f"{_user_prefix(section)}{tensor.name} from {begin[::-1]} in any strides"
        return Target(name, None, 0)

    return tile


def _user_prefix(section: Section) -> str:
    if section.has(SectionFlag.VPU_SHF_USERINPUT):
        return "input "
    return "output " if section.has(SectionFlag.VPU_SHF_USEROUTPUT) else ""


class SymbolNames:
    """Lookup of the relocation targets of a section's words."""

    def __init__(self, blob: Blob) -> None:
        self._known: dict[int, dict[int, Target]] = {}
        for section in blob.of_type(SectionType.SHT_RELA):
            known = self._known.setdefault(section.info, {})
            for entry in relocations(blob, section):
                known[entry.offset + _PATCHED_ADDRESS.get(entry.type, 0)] = entry.target

    def at(self, section: Section, offset: int) -> Target | None:
        """Return the relocation target of the word at an offset."""
        return self._known.get(section.index, {}).get(offset)

    def text(self, section: Section, offset: int, word: int) -> str:
        """Return the text of the relocation target of the word at an offset, or of the word."""
        target = self.at(section, offset)
        return f"{word:#x}" if target is None else target.text(word)

    def field(self, section: Section, begin: int, record: Any, name: str) -> str:
        """Return the text of a field, as ``text``, of the record that begins at an offset."""
        return self.text(section, begin + field_offset(record.dtype, name), int(record[name]))
