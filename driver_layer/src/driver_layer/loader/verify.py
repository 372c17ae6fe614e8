"""The rules that a loadable blob obeys, one function each.

Source: docs/reference/elf.md#loader-checks; bounds that upstream does not check,
docs/reference/elf.md#unchecked-input.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driver_layer.abi import elf, notes
from driver_layer.abi.elf import SectionFlag, SectionType, SymbolType
from driver_layer.abi.platforms import Platform
from driver_layer.abi.tasks import MAPPED_INFERENCE
from driver_layer.errors import CompatibilityError, RelocError, SectionError
from driver_layer.loader import metadata
from driver_layer.loader.place import needs_memory
from driver_layer.loader.read import Blob, Section

Rule = Callable[[Blob, Platform], None]

_MAX_SECTION_BYTES = 16 << 30
"""No single buffer of a blob is larger; keeps a damaged size from exhausting the host."""

_VERIFIED_ONCE = SectionFlag.SHF_EXECINSTR | SectionFlag.VPU_SHF_PROC_SHAVE

_USER_INPUT = SectionFlag.VPU_SHF_USERINPUT
_USER_OUTPUT = SectionFlag.VPU_SHF_USEROUTPUT


def loader_version(blob: Blob, platform: Platform) -> None:
    """Check that the platform's loader accepts the blob's ELF ABI."""
    _accept(blob, notes.NT_LOADER_ABI_VERSION, platform.loader_abi, "ELF ABI")


def firmware_version(blob: Blob, platform: Platform) -> None:
    """Check that the platform's firmware runs the blob's version of mapped inferences."""
    ours = platform.firmware_inference
    _accept(blob, notes.NT_MAPPED_INFERENCE_VERSION, ours, "mapped inference")


def _accept(blob: Blob, kind: int, ours: notes.Version, what: str) -> None:
    found = metadata.read_version(blob, kind)
    if not ours.accepts(found):
        raise CompatibilityError(f"{what} version {found}; this driver accepts {ours}", "notes", 0)


def architecture(blob: Blob, platform: Platform) -> None:
    """Check that the blob is for this platform."""
    found = metadata.read_arch(blob)
    if found != platform.arch:
        raise CompatibilityError(
            f"made for architecture {found}; this device is {platform.name} ({platform.arch:d})",
            SectionType.VPU_SHT_PLATFORM_INFO.name,
            0,
        )


def one_compiler_hash(blob: Blob, _platform: Platform) -> None:
    """Check that the blob has at most one compiler hash."""
    found = blob.of_type(SectionType.VPU_SHT_COMPILER_HASH)
    if len(found) > 1:
        raise SectionError("the blob has a second compiler hash", found[1].name, 0)


def tiles(blob: Blob, platform: Platform) -> None:
    """Check that the platform has the blob's tiles and CMX; 0 tiles is a blob of transfers."""
    network = metadata.read_network(blob)
    if network.tile_count > platform.tiles or network.slice_length > platform.cmx_bytes:
        raise CompatibilityError(
            f"needs {network.tile_count} tiles with {network.slice_length} bytes of CMX; the "
            f"device has {platform.tiles} with {platform.cmx_bytes}",
            SectionType.VPU_SHT_NETDESC.name,
            0,
        )


def sizes(blob: Blob, _platform: Platform) -> None:
    """Check that no section requests more memory than the limit."""
    for section in blob.sections:
        if section.has(SectionFlag.SHF_ALLOC) and section.size > _MAX_SECTION_BYTES:
            raise SectionError(f"{section.size} bytes exceed the limit", section.name, 0)


def symbols(blob: Blob, _platform: Platform) -> None:
    """Check that the section of every symbol exists."""
    for table in blob.of_type(SectionType.SHT_SYMTAB):
        homes = table.records(elf.SYM)["st_shndx"]
        bad = (homes >= len(blob.sections)) & (homes < elf.SHN_LORESERVE)
        if bad.any():
            index = int(bad.argmax())
            raise SectionError(
                f"symbol {index} is in section {homes[index]}, which does not exist",
                table.name,
                index * elf.SYM.itemsize,
            )


def entry(blob: Blob, _platform: Platform) -> None:
    """Check that exactly one symbol names the section of the mapped inference."""
    find_entry(blob)


def find_entry(blob: Blob) -> int:
    """Return the index of the section that holds the mapped inference.

    Raises:
        SectionError: not exactly one entry symbol; or its section is not loaded, or too small.
    """
    homes: list[int] = []
    for table in blob.of_type(SectionType.SHT_SYMTAB):
        records = table.records(elf.SYM)
        homes += records["st_shndx"][records["st_info"] & 0xF == SymbolType.VPU_STT_ENTRY].tolist()
    if len(homes) != 1 or homes[0] >= len(blob.sections):
        raise SectionError(f"{len(homes)} entry symbols instead of one", "symtab", 0)
    section = blob.sections[homes[0]]
    if section.type != SectionType.SHT_PROGBITS or not needs_memory(section):
        raise SectionError("the entry is in a section that is not loaded", section.name, 0)
    if section.has(SectionFlag.SHF_WRITE):
        raise SectionError("the mapped inference must not be writable", section.name, 0)
    if section.size < MAPPED_INFERENCE.itemsize:
        raise SectionError(f"{section.size} bytes: no mapped inference fits", section.name, 0)
    return section.index


def relocations(blob: Blob, platform: Platform) -> None:
    """Check that relocations patch loaded sections, with existing symbols."""
    for section in blob.of_type(SectionType.SHT_RELA):
        target = blob.sections[section.info]
        if not needs_memory(target) or target.type != SectionType.SHT_PROGBITS:
            raise RelocError(f"the target {target.name} is not loaded", section.name, 0)
        if section.link == elf.VPU_RT_SYMTAB:
            _check_runtime_relocation(section, platform)
            continue
        linked = blob.sections[section.link]
        if linked.type == SectionType.VPU_SHT_DMA_SYMBOLS:
            _check_dma_symbols(section, linked, blob)
        else:
            _check_symbols(section, linked)
        _check_user_relocation(section, target, blob)


def _check_symbols(section: Section, symbols: Section) -> None:
    count = symbols.size // elf.SYM.itemsize
    used = section.records(elf.RELA)["r_info"] >> np.uint64(32)
    bad = (used >= count) | (used == 0)
    if bad.any():
        index = int(bad.argmax())
        raise RelocError(
            f"no symbol {used[index]} of {count}", section.name, index * elf.RELA.itemsize
        )


def _check_runtime_relocation(section: Section, platform: Platform) -> None:
    if not platform.runtime_symbols:
        message = f"platform {platform.name} has no symbol table of the runtime"
        raise RelocError(message, section.name, 0)
    if section.has(SectionFlag.VPU_SHF_JIT | elf.USER_FLAGS):
        message = "relocations for user buffers must not link to the runtime's symbol table"
        raise RelocError(message, section.name, 0)
    used = section.records(elf.RELA)["r_info"] >> np.uint64(32)
    bad = used != elf.VPU_NNRD_SYM_NNCMX_SLICE_BASE_ADDR
    if bad.any():
        index = int(bad.argmax())
        raise RelocError(
            f"symbol {used[index]} of the runtime's {platform.runtime_symbols} is not supported; "
            f"{elf.VPU_NNRD_SYM_NNCMX_SLICE_BASE_ADDR}, the workspace of CMX, is",
            section.name,
            index * elf.RELA.itemsize,
        )


def _check_dma_symbols(section: Section, symbols: Section, blob: Blob) -> None:
    if not section.has(SectionFlag.VPU_SHF_JIT):
        message = "relocations with DMA symbols are for user buffers; the JIT flag is missing"
        raise RelocError(message, section.name, 0)
    network = metadata.read_network(blob)
    tensors = network.inputs if section.has(_USER_INPUT) else network.outputs
    numbers = symbols.records(elf.DMA_SYMBOL)["io_index"]
    bad = numbers >= len(tensors)
    if bad.any():
        index = int(bad.argmax())
        raise SectionError(
            f"DMA symbol {index} is of tensor {numbers[index]} of {len(tensors)}",
            symbols.name,
            index * elf.DMA_SYMBOL.itemsize,
        )


def _check_user_relocation(section: Section, target: Section, blob: Blob) -> None:
    jit = section.has(SectionFlag.VPU_SHF_JIT)
    side = section.flags & elf.USER_FLAGS
    if jit != bool(side) or (jit and side not in (_USER_INPUT, _USER_OUTPUT)):
        raise RelocError("user relocations need the JIT flag and one side's flag", section.name, 0)
    if jit and blob.sections[section.link].flags & elf.USER_FLAGS != side:
        raise RelocError("the symbol table belongs to the other side", section.name, 0)
    if jit and target.has(_VERIFIED_ONCE):
        # Only transfers access user buffers; kernels are verified before their addresses are known.
        raise RelocError(f"{target.name} cannot refer to user buffers", section.name, 0)


def user_tables(blob: Blob, _platform: Platform) -> None:
    """Check that each input and output of the metadata has a symbol of its size."""
    network = metadata.read_network(blob)
    for side, tensors in ((_USER_INPUT, network.inputs), (_USER_OUTPUT, network.outputs)):
        tables = [t for t in blob.of_type(SectionType.SHT_SYMTAB) if t.has(side)]
        name = tables[0].name if tables else side.name or ""
        if len(tables) > 1 or (tensors and not tables):
            raise SectionError(f"{len(tables)} symbol tables for {len(tensors)} tensors", name, 0)
        found: list[int] = tables[0].records(elf.SYM)["st_size"][1:].tolist() if tables else []
        wanted = [tensor.nbytes for tensor in tensors]
        if found != wanted:
            raise SectionError(f"symbols of {found} bytes for tensors of {wanted}", name, 0)


RULES: tuple[Rule, ...] = (
    architecture,
    loader_version,
    firmware_version,
    one_compiler_hash,
    tiles,
    sizes,
    symbols,
    entry,
    relocations,
    user_tables,
)
"""All rules, in the order in which they are checked."""


def verify(blob: Blob, platform: Platform) -> None:
    """Check all rules.

    Raises:
        BlobError: a rule is broken; the error of the first one names section and offset.
    """
    for rule in RULES:
        rule(blob, platform)
