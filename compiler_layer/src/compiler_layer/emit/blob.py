"""Assembly of a blob: task lists, programs, constants, relocations and metadata in one ELF file.

Source: section names, flags and alignments as in docs/reference/elf.md#section-flags,
docs/reference/elf.md#section-names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from compiler_layer.emit.elf import (
    NO_FLAGS,
    Content,
    ElfWriter,
    Section,
    Symbol,
    relocation_table,
)
from compiler_layer.emit.layer_map import layer_map
from compiler_layer.emit.lists import CMX, PARAMS, TEXT
from compiler_layer.emit.merge import MergedLists
from compiler_layer.emit.metadata import network_metadata, platform_info
from compiler_layer.emit.records import Columns, Fixup, Relocations
from compiler_layer.emit.stamp import barrier_configs
from compiler_layer.emit.tiles import TileTable
from compiler_layer.model import ModelNames
from compiler_layer.schedule.program import ScheduledProgram
from compiler_layer.schedule.views import Buffer, Space, View
from driver_layer.abi import notes, tasks
from driver_layer.abi.elf import (
    STB_GLOBAL,
    VPU_NNRD_SYM_NNCMX_SLICE_BASE_ADDR,
    VPU_RT_SYMTAB,
    Relocation,
    SectionFlag,
    SectionType,
    SymbolType,
)
from driver_layer.abi.layer_map import SECTION_NAME
from driver_layer.abi.layout import field_offset
from driver_layer.abi.platforms import CMX_WORKSPACE_ADDRESS, Platform

_ALLOC = SectionFlag.SHF_ALLOC
_FW = _ALLOC | SectionFlag.SHF_EXECINSTR
_DMA = _ALLOC | SectionFlag.VPU_SHF_PROC_DMA
_SHAVE = _ALLOC | SectionFlag.VPU_SHF_PROC_SHAVE
_JIT = SectionFlag.VPU_SHF_JIT
_IN, _OUT = SectionFlag.VPU_SHF_USERINPUT, SectionFlag.VPU_SHF_USEROUTPUT

_LIST_SECTIONS = {
    # what          section name            flags  align  field of the mapped inference
    "dma_ddr": ("task.dma.{}.0", _DMA, 32, "dma_ddr"),
    "dma_cmx": ("task.dma.{}.1", _DMA, 32, "dma_cmx"),
    "invariant": ("task.dpu.invariant.{}.0", _FW, 32, "invariants"),
    "variant": ("task.dpu.variant.{}.0", _FW, 32, "variants"),
    "range": ("task.shave.range.{}.0", _FW, 8, "kernel_ranges"),
    "invocation": ("task.shave.invocation.{}.0", _FW, 32, "kernel_invocations"),
}
"""Section of each list, and the field of the mapped inference that refers to it."""

_SPACES = (None, Space.INPUT, Space.OUTPUT)
"""Symbol tables: that of the blob itself, and those of the user's inputs and outputs."""

_RUNTIME = len(_SPACES)
"""Number of the runtime's own symbol table."""

_TILES = {Space.INPUT: _RUNTIME + 1, Space.OUTPUT: _RUNTIME + 2}
"""Numbers of the tables of DMA symbols."""

SHAVE_ALIGN = 1024
"""Alignment of SHAVE code and data."""


@dataclass(frozen=True, slots=True)
class Program:
    """Contents of a blob."""

    name: str
    scheduled: ScheduledProgram
    platform: Platform
    tiles: int
    names: ModelNames = field(default_factory=ModelNames)
    """Names of parameters and results; those of arguments where they are not given."""
    profiling: bool = True
    """True to write the map of tasks to operations, by which the driver profiles inferences."""


def emit_blob(program: Program) -> bytes:
    """Write a blob."""
    return _Emitter(program).emit()


class _Emitter:
    """Writer of one blob."""

    def __init__(self, program: Program) -> None:
        self._p = program
        self._elf = ElfWriter()
        self._symbols: list[Symbol] = []
        self._symbol_of: dict[Hashable, int] = {}
        self._pending: list[tuple[Section, Relocations]] = []
        """Relocations of sections that wait for symbols."""
        self._tiles = {
            Space.INPUT: TileTable("symtab.io.NetworkInput.tiles", _IN | _JIT),
            Space.OUTPUT: TileTable("symtab.io.NetworkOutput.tiles", _OUT | _JIT),
        }

    def emit(self) -> bytes:
        scheduled = self._p.scheduled
        lists = MergedLists(scheduled)
        digest = self._add_notes_and_metadata()
        entry = self._add_program(lists)
        self._add_shave(lists)
        self._add_buffers()
        inputs = self._add_ports("NetworkInput", scheduled.layout.inputs, _IN)
        outputs = self._add_ports("NetworkOutput", scheduled.layout.outputs, _OUT)
        symtab = self._add_symtab("symtab", NO_FLAGS)
        self._add_relocations(symtab, inputs[0], outputs[0])
        self._symbols.append(Symbol("entry", SymbolType.VPU_STT_ENTRY, entry, binding=STB_GLOBAL))
        return self._elf.write([(symtab, self._symbols), inputs, outputs], digest)

    def _section(
        self, name: str, flags: SectionFlag, content: Content, align: int = 64, entsize: int = 0
    ) -> Section:
        kind = SectionType.SHT_PROGBITS
        return self._elf.add(Section(name, kind, flags, content, align=align, entsize=entsize))

    def _symbol(self, key: Hashable, section: Section, value: int = 0) -> None:
        """Add a symbol that fixups refer to by a key."""
        self._symbol_of[key] = 1 + len(self._symbols)
        self._symbols.append(Symbol(section.name, SymbolType.STT_SECTION, section, value))

    def _add_notes_and_metadata(self) -> Section:
        """Add notes and metadata; return the section of the content digest."""
        p = self._p
        loader = notes.encode_note(notes.NT_LOADER_ABI_VERSION, p.platform.loader_abi)
        mapped = notes.encode_note(notes.NT_MAPPED_INFERENCE_VERSION, p.platform.mapped_inference)
        kind = SectionType.SHT_NOTE
        self._elf.add(Section("note.LoaderABIVersion", kind, content=loader, align=4))
        self._elf.add(Section("note.MappedInferenceVersion", kind, content=mapped, align=4))
        digest = self._elf.add(Section(notes.CONTENT_DIGEST, kind, align=4))
        info = platform_info(p.platform)
        kind = SectionType.VPU_SHT_PLATFORM_INFO
        self._elf.add(Section("meta.PlatformInfo", kind, content=info))
        if p.profiling:
            layers = layer_map(p.scheduled)
            kind = SectionType.SHT_PROGBITS
            self._elf.add(Section(SECTION_NAME, kind, content=layers, align=8))
        described = network_metadata(p.name, p.scheduled, p.platform, p.tiles, p.names)
        kind = SectionType.VPU_SHT_NETDESC
        self._elf.add(Section("MetadataSection", kind, content=described))
        return digest

    def _add_program(self, lists: MergedLists) -> Section:
        """Add the mapped inference, barriers and task lists; return the mapped inference."""
        root = np.zeros(1, tasks.MAPPED_INFERENCE)
        version = self._p.platform.mapped_inference
        root["api_version"] = version.major << 16 | version.minor
        fixups: list[Fixup] = []
        barriers = barrier_configs(self._p.scheduled)
        root["barriers"]["count"] = len(barriers)
        fixups.append(self._reference("barriers", 0, "barriers"))
        for (what, where), content in sorted(lists.lists.items()):
            root[_LIST_SECTIONS[what][3]]["count"][0, where] = content.count
            fixups.append(self._reference(_LIST_SECTIONS[what][3], where, (what, where)))
        entry = self._section("program.mapped_inference", _FW, root.tobytes(), 32)
        self._pending.append((entry, Relocations.of(fixups)))
        section = self._section("program.barrier", _FW, barriers.tobytes(), 4, 12)
        self._symbol("barriers", section)
        for key, content in sorted(lists.lists.items()):
            name, flags, align, _ = _LIST_SECTIONS[key[0]]
            size = content.kind.itemsize
            section = self._section(name.format(key[1]), flags, content.content(), align, size)
            self._symbol(key, section)
            self._pending.append((section, content.relocations))
        return entry

    def _reference(self, name: str, where: int, key: Hashable) -> Fixup:
        offset = field_offset(tasks.MAPPED_INFERENCE, name)
        offset += where * tasks.TASK_REFERENCE.itemsize
        offset += field_offset(tasks.TASK_REFERENCE, "address")
        return Fixup(offset, Relocation.R_VPU_64, key, 0)

    def _add_shave(self, lists: MergedLists) -> None:
        text = bytes(lists.programs.text)
        if not text:
            return
        self._symbol(TEXT, self._section("shave.text", _FW, text, SHAVE_ALIGN))
        params = self._section("shave.params", _SHAVE, bytes(lists.params), SHAVE_ALIGN)
        self._symbol(PARAMS, params)
        self._pending.append((params, lists.params_relocations))

    def _add_buffers(self) -> None:
        p = self._p
        workspace = Section(
            "buffer.CMX_NN.0",
            SectionType.VPU_SHT_CMX_WORKSPACE,
            size=p.platform.workspace_bytes,
        )
        self._symbol(CMX, self._elf.add(workspace), CMX_WORKSPACE_ADDRESS)
        if p.scheduled.scratch_bytes:
            flags = _DMA | SectionFlag.SHF_WRITE
            kind = SectionType.SHT_NOBITS
            scratch = Section("buffer.DDR.0", kind, flags, size=p.scheduled.scratch_bytes)
            self._symbol(Space.SCRATCH, self._elf.add(scratch))
        for buffer in p.scheduled.layout.constants:
            assert buffer.constant is not None  # the buffer is in Space.CONSTANT
            content = buffer.constant.stored()
            section = self._section(f"buffer.Constant.{buffer.index}.constant", _DMA, content)
            self._symbol(buffer, section)

    def _add_ports(
        self, what: str, buffers: Sequence[Buffer], user: SectionFlag
    ) -> tuple[Section, list[Symbol]]:
        symbols: list[Symbol] = []
        for buffer in buffers:
            flags = user | SectionFlag.SHF_WRITE | _ALLOC
            name = f"io.{what}{buffer.index}"
            kind = SectionType.SHT_NOBITS
            section = Section(name, kind, flags, size=buffer.nbytes, align=1)
            self._elf.add(section)
            symbols.append(Symbol(buffer.name, SymbolType.STT_OBJECT, section, size=buffer.nbytes))
        return self._add_symtab(f"symtab.io.{what}", user | _JIT), symbols

    def _add_symtab(self, name: str, flags: SectionFlag) -> Section:
        return self._elf.add(Section(name, SectionType.SHT_SYMTAB, flags, align=8, entsize=24))

    def _add_relocations(self, symtab: Section, inputs: Section, outputs: Section) -> None:
        resolved = [(target, *self._resolved(waiting)) for target, waiting in self._pending]
        tables = [
            ("", NO_FLAGS, symtab),
            (".input", _JIT | _IN, inputs),
            (".output", _JIT | _OUT, outputs),
            (".runtime", NO_FLAGS, VPU_RT_SYMTAB),
            (".input.tiles", _JIT | _IN, self._tiles[Space.INPUT].add_to(self._elf)),
            (".output.tiles", _JIT | _OUT, self._tiles[Space.OUTPUT].add_to(self._elf)),
        ]
        for target, numbers, columns in resolved:
            for number, (suffix, flags, table) in enumerate(tables):
                entries = columns[numbers == number]
                if len(entries):
                    rela = Section(
                        f"rela.{target.name}{suffix}",
                        SectionType.SHT_RELA,
                        flags | SectionFlag.SHF_INFO_LINK,
                        relocation_table(entries).tobytes(),
                        align=8,
                        entsize=24,
                        link=table,
                        info=target,
                    )
                    self._elf.add(rela)

    def _resolved(self, relocations: Relocations) -> tuple[Columns, Columns]:
        """Return each relocation's symbol table, and the relocations with symbols and addends."""
        columns = relocations.columns()
        places = np.array([self._place(each) for each in relocations.targets], np.int64)
        places = places.reshape(-1, 3)[columns[:, 2]]
        columns[:, 2] = places[:, 1]
        columns[:, 3] += places[:, 2]
        return places[:, 0], columns

    def _place(self, target: Hashable) -> tuple[int, int, int]:
        """Return a target's symbol table, its symbol's number there, and the offset to add."""
        if target == CMX and self._p.platform.runtime_symbols:
            return _RUNTIME, VPU_NNRD_SYM_NNCMX_SLICE_BASE_ADDR, 0
        if isinstance(target, View):
            space = target.buffer.space
            return _TILES[space], self._tiles[space].number(target), 0
        if not isinstance(target, Buffer):
            return 0, self._symbol_of[target], 0
        match target.space:
            case Space.SCRATCH:
                return 0, self._symbol_of[Space.SCRATCH], target.offset
            case Space.CONSTANT:
                return 0, self._symbol_of[target], 0
            case _:
                return _SPACES.index(target.space), target.index + 1, 0
