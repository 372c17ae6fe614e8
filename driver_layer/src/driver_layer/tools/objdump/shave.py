"""SHAVE programs, disassembled, with the windows of their first calls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driver_layer.abi import tasks as abi
from driver_layer.abi.dtypes import BY_CODE
from driver_layer.abi.layout import field_offset
from driver_layer.abi.shave import KERNEL_ARGS, MAX_WINDOWS, WINDOW, Access, ProgramError, decode
from driver_layer.abi.shave_text import disassemble
from driver_layer.loader.read import Blob, Section
from driver_layer.tools.objdump.tasks import TaskLists


def programs(blob: Blob) -> Iterator[str]:
    """Return all programs; a program that several tiles or calls share is shown once."""
    program = TaskLists(blob)
    shown: set[bytes] = set()
    for tile in range(abi.MAX_TILES):
        ranges = program.list("kernel_ranges", tile, abi.KERNEL_RANGE)
        calls = program.list("kernel_invocations", tile, abi.KERNEL_INVOCATION)
        if ranges is None:
            continue
        for index, one in enumerate(ranges[1]):
            at = index * abi.KERNEL_RANGE.itemsize
            at += field_offset(abi.KERNEL_RANGE, "kernel_entry")
            target = program.names.at(ranges[0], at)
            if target is None or target.section is None:
                continue
            size = int(one["code_size"])
            code = bytes(target.section.data[target.addend : target.addend + size])
            if code in shown:
                continue
            shown.add(code)
            yield f"{target.text()}: kernel {index} of tile {tile}, {size} bytes"
            if calls is not None:
                yield from _windows(program, calls, index)
            yield from _text(code)


def _text(code: bytes) -> Iterator[str]:
    try:
        lines = disassemble(decode(code)).splitlines()
    except ProgramError as error:
        lines = [f"not a program: {error}"]
    yield from (f"    {line}" for line in lines)


def _windows(program: TaskLists, calls: tuple[Section, np.ndarray], kernel: int) -> Iterator[str]:
    """Return the windows of the first call of a kernel."""
    section, records = calls
    found = np.flatnonzero(records["range_index"] == kernel)
    if not len(found):
        return
    at = int(found[0]) * abi.KERNEL_INVOCATION.itemsize
    args = program.names.at(section, at + field_offset(abi.KERNEL_INVOCATION, "kernel_args"))
    if args is None or args.section is None:
        return
    end = args.addend + KERNEL_ARGS.itemsize
    if not args.addend >= 0 or end > len(args.section.data):
        return
    head = np.frombuffer(args.section.data, KERNEL_ARGS, 1, args.addend)[0]
    room = (len(args.section.data) - end) // WINDOW.itemsize
    count = min(int(head["window_count"]), MAX_WINDOWS, room)
    grid = "x".join(str(dim) for dim in head["grid"])
    for number, window in enumerate(np.frombuffer(args.section.data, WINDOW, count, end)):
        begin = end + number * WINDOW.itemsize
        place = program.names.field(args.section, begin, window, "address")
        element = BY_CODE.get(int(window["type"]))
        access = Access(int(window["access"]) & 3).name or "none"
        kind = "?" if element is None else element.name
        yield (
            f"  ; w{number} = {place}: {kind} {access.lower()}, "
            f"grid {grid}, {window['cols']} columns"
        )
