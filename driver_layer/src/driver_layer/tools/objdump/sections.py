"""Sections, symbols, relocations and metadata as text."""

from __future__ import annotations

from collections.abc import Iterator

from driver_layer.abi import notes
from driver_layer.abi.elf import SYM, Relocation, SectionFlag, SectionType, SymbolType
from driver_layer.abi.metadata import ArchKind
from driver_layer.loader import metadata as loader
from driver_layer.loader.read import Blob
from driver_layer.tools.objdump.names import relocations as entries
from driver_layer.tools.objdump.names import symbol_names

_TYPES = {
    int(kind): kind.name.removeprefix("SHT_").removeprefix("VPU_SHT_") for kind in SectionType
}
_FLAGS = {
    flag: flag.name.removeprefix("SHF_").removeprefix("VPU_SHF_")
    for flag in SectionFlag
    if flag.name
}


def table(blob: Blob) -> Iterator[str]:
    """Return the section table."""
    width = max(len(section.name) for section in blob.sections)
    yield f"{'#':>4}  {'name':{width}}  {'type':14} {'offset':>10} {'size':>10} {'align':>5}  flags"
    for s in blob.sections:
        kind = _TYPES.get(s.type, f"{s.type:#x}")
        flags = " ".join(name for flag, name in _FLAGS.items() if flag in s.flags)
        yield (
            f"{s.index:4}  {s.name:{width}}  {kind:14} {s.offset:#10x} {s.size:#10x} "
            f"{s.align:5}  {flags}"
        ).rstrip()


def symbols(blob: Blob) -> Iterator[str]:
    """Return all symbol tables."""
    kinds = {
        int(kind): kind.name.removeprefix("STT_").removeprefix("VPU_STT_") for kind in SymbolType
    }
    for section in blob.of_type(SectionType.SHT_SYMTAB):
        yield f"{section.name}:"
        names = symbol_names(blob, section)
        for index, (name, record) in enumerate(zip(names, section.records(SYM), strict=True)):
            if index:
                kind = kinds.get(int(record["st_info"]) & 0xF, "?")
                value, size = int(record["st_value"]), int(record["st_size"])
                yield f"{index:5}  {kind:8} {value:#12x} {size:10}  {name}"


def relocations(blob: Blob) -> Iterator[str]:
    """Return all relocations."""
    known = {int(kind): kind.name for kind in Relocation}
    for section in blob.of_type(SectionType.SHT_RELA):
        jit = " (when user buffers are known)" if section.has(SectionFlag.VPU_SHF_JIT) else ""
        yield f"{section.name} -> {blob.sections[section.info].name}{jit}:"
        for entry in entries(blob, section):
            kind = known.get(entry.type, str(entry.type))
            yield f"  {entry.offset:#8x}  {kind:32} {entry.target.text()}"


def metadata(blob: Blob) -> Iterator[str]:
    """Return the blob's metadata."""
    network = loader.read_network(blob)
    arch = loader.read_arch(blob)
    loaded = sum(s.size for s in blob.sections if s.has(SectionFlag.SHF_ALLOC))
    yield f"name           {network.blob_name}"
    yield f"architecture   {ArchKind(arch).name if arch in set(ArchKind) else arch}"
    yield f"tiles          {network.tile_count}, {network.slice_length} bytes of CMX each"
    yield f"barriers       {network.barriers} physical"
    yield f"ELF ABI        {loader.read_version(blob, notes.NT_LOADER_ABI_VERSION)}"
    version = loader.read_version(blob, notes.NT_MAPPED_INFERENCE_VERSION)
    yield f"mapped inf.    {version}"
    yield f"memory         {loaded} bytes in {len(blob.sections)} sections"
    for title, tensors in (("inputs", network.inputs), ("outputs", network.outputs)):
        yield f"{title}:"
        for index, tensor in enumerate(tensors):
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            yield f"  {index:3}  {tensor.element.name:8} {shape:20} {tensor.name}"
