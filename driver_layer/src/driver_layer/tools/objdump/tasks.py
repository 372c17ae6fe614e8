"""Task lists as text: the tasks of each engine in order, with their barriers.

Barriers are shown by their virtual numbers. Tasks name physical barriers; the number of virtual
barriers programmed before a task is issued determines the current one of each physical barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driver_layer.abi import tasks as abi
from driver_layer.abi.dtypes import BY_CODE
from driver_layer.abi.layout import Record, RecordArray, field_offset
from driver_layer.abi.tasks import DmaCfg
from driver_layer.errors import SectionError
from driver_layer.loader.read import Blob, Section
from driver_layer.loader.verify import find_entry
from driver_layer.npu.barriers import mask_bits
from driver_layer.tools.objdump.names import SymbolNames


class TaskLists:
    """A blob's mapped inference, with its lists located by the relocations."""

    def __init__(self, blob: Blob) -> None:
        self.names = SymbolNames(blob)
        self._entry = blob.sections[find_entry(blob)]
        self._root = np.frombuffer(self._entry.data, abi.MAPPED_INFERENCE, 1)[0]
        config = self.list("barriers", None, abi.BARRIER_CONFIG)
        self.barriers = np.zeros(0, abi.BARRIER_CONFIG) if config is None else config[1]

    def list(
        self, field: str, index: int | None, kind: Record
    ) -> tuple[Section, RecordArray] | None:
        """Return the section and the records of a list; None if the list is empty.

        Raises:
            SectionError: the list has no relocation, or extends past its section.
        """
        reference = self._root[field] if index is None else self._root[field][index]
        count = int(reference["count"])
        if not count:
            return None
        at = field_offset(abi.MAPPED_INFERENCE, field)
        at += (index or 0) * abi.TASK_REFERENCE.itemsize
        at += field_offset(abi.TASK_REFERENCE, "address")
        target = self.names.at(self._entry, at)
        if target is None or target.section is None:
            raise SectionError(f"{field} has no relocation", self._entry.name, at)
        section = target.section
        if count * kind.itemsize > len(section.data):
            raise SectionError(f"{count} tasks extend past the section", section.name, 0)
        return section, np.frombuffer(section.data, kind, count)

    def virtual(self, mask: int, start_after: int) -> str:
        """Return, as text, the virtual barriers that a task's mask of physical barriers means."""
        numbers: list[str] = []
        for real in mask_bits(mask):
            same = np.flatnonzero(self.barriers["real_id"] == real)
            issued = same[same < start_after]
            chosen = issued[-1] if len(issued) else (same[0] if len(same) else None)
            numbers.append("?" if chosen is None else str(chosen))
        return ",".join(numbers) or "-"


def barriers(blob: Blob) -> Iterator[str]:
    """Return the virtual barriers, a line each."""
    yield "barrier  physical  producers  consumers  next"
    for index, config in enumerate(TaskLists(blob).barriers):
        following = int(config["next_same_id"])
        yield (
            f"{index:7}  {config['real_id']:8}  {config['producers']:9}  "
            f"{config['consumers']:9}  {'-' if following < 0 else following}"
        )


def lists(blob: Blob) -> Iterator[str]:
    """Return all task lists."""
    program = TaskLists(blob)
    kinds = (
        ("DMA port {} DDR", "dma_ddr", abi.DMA_TASK, _dma_lines),
        ("DMA port {} CMX", "dma_cmx", abi.DMA_TASK, _dma_lines),
        ("DPU tile {}", "invariants", abi.DPU_INVARIANT, _dpu_lines),
        ("SHAVE tile {}", "kernel_invocations", abi.KERNEL_INVOCATION, _shave_lines),
    )
    for title, field, kind, lines in kinds:
        for number in range(abi.MAX_TILES):
            found = program.list(field, number, kind)
            if found is not None:
                section, records = found
                yield f"{title.format(number)}: {len(records)} tasks in {section.name}"
                yield from lines(program, number, section, records)


def _line(program: TaskLists, index: int, waits: int, posts: int, after: int, what: str) -> str:
    wait, post = program.virtual(waits, after), program.virtual(posts, after)
    return f"  {index:5}  wait {wait:9} post {post:9} {what}"


def _dma_lines(program: TaskLists, _: int, section: Section, records: RecordArray) -> Iterator[str]:
    for index, task in enumerate(records):
        d = task["descriptor"]
        base = index * abi.DMA_TASK.itemsize
        source, target = (program.names.field(section, base, d, side) for side in ("src", "dst"))
        what = f"{source} {_dims(d, 'src')} -> {target} {_dims(d, 'dst')}"
        if int(d["cfg"]) & DmaCfg.SRC_LIST:
            rows = program.names.field(section, base, d, "src_list")
            table = f"{source} [{int(d['src_dim1']) + 1}x{d['src_width']}B]"
            length = int(d["src_dim2"]) or "all"
            what = f"gather rows {rows} of {length} of {table} -> {target} {_dims(d, 'dst')}"
        waits = int(d["consumer_lo"]) | int(d["consumer_hi"]) << 64
        posts = int(d["producer_lo"]) | int(d["producer_hi"]) << 64
        yield _line(program, index, waits, posts, int(task["start_after"]), what)


def _dims(descriptor: Any, side: str) -> str:
    """Return the sizes of one side, outermost first; the last is the contiguous run in bytes."""
    sizes = [int(descriptor[f"{side}_dim{n}"]) + 1 for n in range(5, 0, -1)]
    outer = "".join(f"{size}x" for size in sizes if size > 1)
    return f"[{outer}{descriptor[f'{side}_width']}B]"


def _masks(scheduling: Any) -> tuple[int, int, int]:
    wait, post = scheduling["wait_mask"], scheduling["post_mask"]
    return (
        int(wait[0]) | int(wait[1]) << 64,
        int(post[0]) | int(post[1]) << 64,
        int(scheduling["start_after"]),
    )


def _dpu_lines(
    program: TaskLists, tile: int, section: Section, records: RecordArray
) -> Iterator[str]:
    variants = program.list("variants", tile, abi.DPU_VARIANT)
    used = 0
    for index, invariant in enumerate(records):
        r = invariant["registers"]
        base = index * abi.DPU_INVARIANT.itemsize
        operands = {
            name: program.names.field(section, base, r, f"{name}_address")
            for name in ("act", "weight", "out")
        }
        types = {
            name: BY_CODE[int(r[f"{name}_type"])].name if int(r[f"{name}_type"]) in BY_CODE else "?"
            for name in operands
        }
        kind = "accumulate" if int(r["flags"]) & abi.DpuFlag.ACCUMULATE else "matmul"
        what = (
            f"{kind} b{r['batch']} m{r['m']} n{r['n']} k{r['k']}: "
            f"{types['act']} {operands['act']} x {types['weight']} {operands['weight']}"
            f" -> {types['out']} {operands['out']}{_tables(r)}"
        )
        yield _line(program, index, *_masks(invariant["scheduling"]), what)
        count = int(invariant["variant_count"])
        if variants is not None:
            for variant in variants[1][used : used + count]:
                yield (
                    f"{'':9}variant m {variant['m_begin']}:{variant['m_end']} "
                    f"n {variant['n_begin']}:{variant['n_end']}"
                )
        used += count


def _tables(registers: Any) -> str:
    """Return the text of the tables of quantised operands."""
    found = [
        f"{what} {BY_CODE[int(registers[f'{name}_type'])].name}"
        for name, what in (("scale", "scales"), ("zero", "zero points"))
        if int(registers[f"{name}_type"]) in BY_CODE
    ]
    if int(registers["group"]):
        found.append(f"group {registers['group']}")
    if int(registers["act_scale_address"]):
        found.append("a scale per row")
    if int(registers["act_zero"]):
        found.append(f"activations minus {registers['act_zero']}")
    return f" ({', '.join(found)})" if found else ""


def _shave_lines(
    program: TaskLists, _: int, section: Section, records: RecordArray
) -> Iterator[str]:
    for index, call in enumerate(records):
        base = index * abi.KERNEL_INVOCATION.itemsize
        args = program.names.text(
            section, base + field_offset(abi.KERNEL_INVOCATION, "kernel_args"), 0
        )
        what = f"kernel {call['range_index']} with {args}"
        yield _line(program, index, *_masks(call["scheduling"]), what)
