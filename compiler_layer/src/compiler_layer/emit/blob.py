"""Puts a blob together: task lists, programs, constants, relocations, metadata, in one ELF.

Source: section names, flags and alignments as in fact sheet elf_driver §1.3 and §1.10.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from compiler_layer.emit.elf import (
    NO_FLAGS,
    STB_GLOBAL,
    Content,
    ElfWriter,
    Section,
    Symbol,
    relocation_table,
)
from compiler_layer.emit.layer_map import layer_map
from compiler_layer.emit.lists import CMX, SCRATCH, BufferKey, Key, ListBuilder
from compiler_layer.emit.metadata import network_metadata, platform_info
from compiler_layer.emit.records import Fixup, TaskList
from compiler_layer.model import Model
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.layout import Layout
from compiler_layer.schedule.views import Buffer, Space
from driver_layer.abi import notes, tasks
from driver_layer.abi.elf import Relocation, SectionFlag, SectionType, SymbolType
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
"""How the lists are called in the blob, and where they are reached from."""

SHAVE_ALIGN = 1024
"""Alignment of SHAVE code and data."""


@dataclass(frozen=True, slots=True)
class Program:
    """All that goes into a blob."""

    name: str
    model: Model
    layout: Layout
    schedule: Schedule
    platform: Platform
    tiles: int
    scratch_bytes: int


def emit_blob(program: Program) -> bytes:
    """Write a blob."""
    return _Emitter(program).emit()


_Entry = tuple[int, int, int, int]
"""A relocation: offset, type, symbol index, addend."""


def _port(target: Hashable) -> tuple[Space, int] | None:
    """The input or output that a fixup refers to, if it does."""
    if isinstance(target, BufferKey) and target.space is not Space.CONSTANT:
        return target.space, target.index
    return None


@dataclass(slots=True)
class _Pending:
    """Relocations of one section, waiting for symbols."""

    target: Section
    fixups: Sequence[Fixup] = field(default_factory=list[Fixup])


class _Emitter:
    """Writes one blob."""

    def __init__(self, program: Program) -> None:
        self._p = program
        self._elf = ElfWriter()
        self._symbols: list[Symbol] = []
        self._symbol_of: dict[Hashable, int] = {}
        self._pending: list[_Pending] = []

    def emit(self) -> bytes:
        lists = ListBuilder(self._p.schedule)
        lists.build()
        self._add_notes_and_metadata()
        entry = self._add_program(lists)
        self._add_shave(lists)
        self._add_buffers()
        inputs = self._add_ports("NetworkInput", self._p.layout.inputs, _IN)
        outputs = self._add_ports("NetworkOutput", self._p.layout.outputs, _OUT)
        symtab = self._add_symtab("symtab", NO_FLAGS)
        self._add_relocations(symtab, inputs[0], outputs[0])
        self._symbols.append(Symbol("entry", SymbolType.VPU_STT_ENTRY, entry, binding=STB_GLOBAL))
        return self._elf.write([(symtab, self._symbols), inputs, outputs])

    def _section(
        self, name: str, flags: SectionFlag, content: Content, align: int = 64, entsize: int = 0
    ) -> Section:
        kind = SectionType.SHT_PROGBITS
        return self._elf.add(Section(name, kind, flags, content, align=align, entsize=entsize))

    def _symbol(self, key: Hashable, section: Section, value: int = 0) -> None:
        """Make what a fixup may refer to by a key."""
        self._symbol_of[key] = 1 + len(self._symbols)
        self._symbols.append(Symbol(section.name, SymbolType.STT_SECTION, section, value))

    def _add_notes_and_metadata(self) -> None:
        p = self._p
        for name, kind, version in (
            ("note.LoaderABIVersion", notes.NT_LOADER_ABI_VERSION, notes.LOADER_ABI_VERSION),
            (
                "note.MappedInferenceVersion",
                notes.NT_MAPPED_INFERENCE_VERSION,
                notes.MAPPED_INFERENCE_VERSION,
            ),
        ):
            content = notes.encode_note(kind, version)
            self._elf.add(Section(name, SectionType.SHT_NOTE, content=content, align=4))
        info = platform_info(p.platform)
        kind = SectionType.VPU_SHT_PLATFORM_INFO
        self._elf.add(Section("meta.PlatformInfo", kind, content=info))
        layers = layer_map(p.layout, p.schedule)
        kind = SectionType.SHT_PROGBITS
        self._elf.add(Section(SECTION_NAME, kind, content=layers, align=8))
        described = network_metadata(p.name, p.model.inputs, p.model.outputs, p.platform, p.tiles)
        kind = SectionType.VPU_SHT_NETDESC
        self._elf.add(Section("MetadataSection", kind, content=described))

    def _add_program(self, lists: ListBuilder) -> Section:
        """Add the mapped inference, the barriers and the task lists; give the first."""
        root = np.zeros(1, tasks.MAPPED_INFERENCE)
        version = notes.MAPPED_INFERENCE_VERSION
        root["api_version"] = version.major << 16 | version.minor
        fixups: list[Fixup] = []
        barriers = self._barriers()
        root["barriers"]["count"] = len(barriers)
        fixups.append(self._reference("barriers", 0, "barriers"))
        for key in sorted(lists.lists):
            what, where = key
            root[_LIST_SECTIONS[what][3]]["count"][0, where] = len(lists.lists[key].rows)
            fixups.append(self._reference(_LIST_SECTIONS[what][3], where, key))
        entry = self._section("program.mapped_inference", _FW, root.tobytes(), 32)
        self._pending.append(_Pending(entry, fixups))
        section = self._section("program.barrier", _FW, barriers.tobytes(), 4, 12)
        self._symbol("barriers", section)
        for key in sorted(lists.lists):
            self._add_list(key, lists.lists[key])
        return entry

    def _reference(self, name: str, where: int, key: Hashable) -> Fixup:
        offset = field_offset(tasks.MAPPED_INFERENCE, name)
        offset += where * tasks.TASK_REFERENCE.itemsize
        offset += field_offset(tasks.TASK_REFERENCE, "address")
        return Fixup(offset, Relocation.R_VPU_64, key, 0)

    def _barriers(self) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        schedule = self._p.schedule
        count, physical = len(schedule.barriers), schedule.physical
        configs = np.zeros(count, tasks.BARRIER_CONFIG)
        for number, barrier in enumerate(schedule.barriers):
            following = number + physical
            configs[number] = (
                following if following < count else -1,
                len(barrier.producers),
                len(barrier.consumers),
                number % physical,
            )
        return configs

    def _add_list(self, key: Key, content: TaskList) -> None:
        name, flags, align, _ = _LIST_SECTIONS[key[0]]
        data = content.records().tobytes()
        section = self._section(name.format(key[1]), flags, data, align, content.kind.itemsize)
        self._symbol(key, section)
        self._pending.append(_Pending(section, content.fixups))

    def _add_shave(self, lists: ListBuilder) -> None:
        if not lists.text:
            return
        self._symbol("text", self._section("shave.text", _FW, bytes(lists.text), SHAVE_ALIGN))
        params = self._section("shave.params", _SHAVE, lists.params, SHAVE_ALIGN)
        self._symbol("params", params)
        self._pending.append(_Pending(params, lists.param_fixups))

    def _add_buffers(self) -> None:
        p = self._p
        workspace = Section(
            "buffer.CMX_NN.0",
            SectionType.VPU_SHT_CMX_WORKSPACE,
            size=p.platform.workspace_bytes,
        )
        self._symbol(CMX, self._elf.add(workspace), CMX_WORKSPACE_ADDRESS)
        if p.scratch_bytes:
            flags = _DMA | SectionFlag.SHF_WRITE
            kind = SectionType.SHT_NOBITS
            scratch = Section("buffer.DDR.0", kind, flags, size=p.scratch_bytes)
            self._symbol(SCRATCH, self._elf.add(scratch))
        for buffer in p.layout.constants:
            assert buffer.constant is not None  # its space says so
            content = buffer.constant.stored()
            section = self._section(f"buffer.Constant.{buffer.index}.constant", _DMA, content)
            self._symbol(BufferKey(Space.CONSTANT, buffer.index), section)

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
        for pending in self._pending:
            static: list[_Entry] = []
            user: dict[Space, list[_Entry]] = {Space.INPUT: [], Space.OUTPUT: []}
            for fixup in pending.fixups:
                port = _port(fixup.target)
                if port is not None:
                    space, index = port
                    user[space].append((fixup.offset, fixup.type, index + 1, fixup.addend))
                else:
                    symbol = self._symbol_of[fixup.target]
                    static.append((fixup.offset, fixup.type, symbol, fixup.addend))
            self._add_rela(pending.target, "", NO_FLAGS, symtab, static)
            self._add_rela(pending.target, ".input", _JIT | _IN, inputs, user[Space.INPUT])
            self._add_rela(pending.target, ".output", _JIT | _OUT, outputs, user[Space.OUTPUT])

    def _add_rela(
        self,
        target: Section,
        suffix: str,
        flags: SectionFlag,
        symtab: Section,
        entries: Sequence[_Entry],
    ) -> None:
        if entries:
            self._elf.add(
                Section(
                    f"rela.{target.name}{suffix}",
                    SectionType.SHT_RELA,
                    flags | SectionFlag.SHF_INFO_LINK,
                    relocation_table(entries).tobytes(),
                    align=8,
                    entsize=24,
                    link=symtab,
                    info=target,
                )
            )
