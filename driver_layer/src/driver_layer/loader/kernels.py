"""Verification of SHAVE programs and their arguments before they run.

A verified kernel terminates, reads only registers that it has written, and accesses only its tile's
CMX workspace; its shapes are consistent.

Source: the rules of ``abi.shave``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driver_layer.abi import shave, tasks
from driver_layer.abi.dtypes import BY_CODE, FLOAT8, DType
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.platforms import (
    CMX_WORKSPACE_OFFSET,
    TILE_OFFSET_MASK,
    Platform,
    tile_base,
    tile_of,
)
from driver_layer.abi.shave import Access, Form, Instruction, Op, ProgramError, decode, encode
from driver_layer.errors import KernelError
from driver_layer.loader.lists import fixed_bytes, read_list
from driver_layer.loader.ops import described
from driver_layer.loader.read import Blob
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.program import queue_name

_MEMORY_TYPES = frozenset(
    {
        DType.FP32,
        DType.FP16,
        DType.BFP16,
        *FLOAT8,
        DType.I64,
        DType.I32,
        DType.U8,
        DType.I8,
        DType.BIN,
    }
)
"""Element types that SHAVE loads and stores."""

_FIELDS = ("dst", "a", "b", "c", "window", "imm")

Shape = tuple[int, ...]
"""Grid dimensions, then columns; 1 where a register or window is broadcast."""


def verify_program(code: bytes) -> list[Instruction]:
    """Check a program, independently of its arguments.

    Raises:
        KernelError: the program breaks a rule; the offset is that of the instruction.
    """
    size = shave.INSTRUCTION.itemsize
    if not 0 < len(code) <= shave.MAX_INSTRUCTIONS * size:
        raise KernelError(f"a program of {len(code)} bytes is empty or too long", "shave.text", 0)
    try:
        program = decode(code)
    except ProgramError as error:
        raise KernelError(str(error), "shave.text", 0) from None
    written: set[int] = set()
    for index, instruction in enumerate(program):
        problem = _problem(instruction, written, last=index + 1 == len(program))
        if problem:
            raise KernelError(f"instruction {index}: {problem}", "shave.text", index * size)
    if encode(program) != code:
        raise KernelError("reserved bytes are not zero", "shave.text", 0)
    return program


def _problem(instruction: Instruction, written: set[int], last: bool) -> str | None:
    """Return the problem of an instruction, if any, and record the register that it writes."""
    form = shave.FORMS[instruction.op]
    used = {"imm" if kind in ("float", "int") else kind for kind in shave.OPERANDS[form]}
    if (instruction.op is Op.END) != last:
        return "END must be the last instruction, and only the last"
    stray = [field for field in _FIELDS if field not in used and getattr(instruction, field)]
    if stray:
        return f"unused field {stray[0]} is not zero"
    if instruction.window >= shave.MAX_WINDOWS:
        return f"window {instruction.window} is out of range"
    if max(instruction.dst, instruction.a, instruction.b, instruction.c) >= shave.REGISTERS:
        return "only 32 registers exist"
    unset = [register for register in instruction.sources if register not in written]
    if unset:
        return f"register v{unset[0]} is read before it is written"
    if form in shave.WRITES_REGISTER:
        written.add(instruction.dst)
    return None


class ArgumentVerifier:
    """Check of argument blocks against programs; equal blocks and equal shapes are checked once.

    Equal layers have equal blocks: the same program with the same windows in CMX.

    Args:
        platform: the device, whose CMX bounds the windows.
    """

    def __init__(self, platform: Platform) -> None:
        self._begin = CMX_WORKSPACE_OFFSET
        self._end = CMX_WORKSPACE_OFFSET + platform.workspace_bytes
        self._known: set[tuple[int, tuple[Shape, ...], tuple[int, ...]]] = set()
        self._blocks: set[tuple[int, int, bytes]] = set()

    def verify(self, number: int, program: Sequence[Instruction], args: bytes, tile: int) -> None:
        """Check one argument block.

        Args:
            number: identifier of the program.
            program: verified instructions.
            args: the block.
            tile: tile that runs the program.

        Raises:
            KernelError: the block breaks a rule.
        """
        block = (number, tile, args)
        if block in self._blocks:
            return
        head = np.frombuffer(args, shave.KERNEL_ARGS, 1)[0]
        count, grid = int(head["window_count"]), tuple(head["grid"].tolist())
        if (
            count > shave.MAX_WINDOWS
            or shave.KERNEL_ARGS.itemsize + count * shave.WINDOW.itemsize > len(args)
        ):
            raise _error(f"{count} windows do not fit into {len(args)} bytes")
        if len(grid) != shave.GRID_DIMS or not all(grid):
            raise _error(f"invalid grid {grid}")
        records = np.frombuffer(args, shave.WINDOW, count, shave.KERNEL_ARGS.itemsize).tolist()
        shapes = tuple(self._window(record, grid, tile) for record in records)
        accesses = tuple(int(record[5]) for record in records)
        key = (number, shapes, accesses)
        if key not in self._known:
            _check_shapes(program, shapes, accesses)
            self._known.add(key)
        self._blocks.add(block)

    def _window(self, record: Any, grid: Shape, tile: int) -> Shape:
        """Check one window; return the shape that a load from it has."""
        address, cols, col_stride, steps, kind, access = record
        element = BY_CODE.get(kind)
        if element is None or element.code not in _MEMORY_TYPES:
            raise _error(f"a window has unsupported type {kind}")
        if not 0 < access <= Access.READ | Access.WRITE:
            raise _error(f"a window has invalid access {access}")
        points = grid[0] * grid[1] * grid[2] * cols
        if not 0 < points <= shave.MAX_ELEMENTS:
            raise _error(f"{cols} columns over a grid of {grid}: no elements, or too many")
        dims, strides = (*grid, cols), (*(int(step) for step in steps), col_stride)
        reach = sum((dim - 1) * stride for dim, stride in zip(dims, strides, strict=True))
        begin = address & TILE_OFFSET_MASK
        end = begin + reach + element.storage.itemsize
        if tile_of(address) != tile_base(tile) or begin < self._begin or end > self._end:
            raise _error(f"a window from {address:#x} over {end - begin} bytes leaves the CMX")
        return tuple(dim if stride else 1 for dim, stride in zip(dims, strides, strict=True))


def _error(message: str) -> KernelError:
    return KernelError(message, "shave.params", 0)


def _check_shapes(
    program: Sequence[Instruction], windows: Sequence[Shape], accesses: Sequence[int]
) -> None:
    """Infer the shapes of registers through a program and check them."""
    widest = max((shape[-1] for shape in windows), default=1)
    registers: dict[int, Shape] = {}
    for index, i in enumerate(program):
        if i.form in (Form.DST_WINDOW, Form.WINDOW_A):
            need = Access.READ if i.form is Form.DST_WINDOW else Access.WRITE
            if i.window >= len(windows) or not accesses[i.window] & need:
                raise _error(f"instruction {index}: window {i.window} does not allow {need.name}")
        if i.form is Form.WINDOW_A:
            shape = registers[i.a]
            if _joined([shape, windows[i.window]]) != windows[i.window]:
                raise _error(f"instruction {index}: {shape} does not fit {windows[i.window]}")
        elif i.op is not Op.END:
            registers[i.dst] = _result(index, i, registers, windows, widest)


def _result(
    index: int,
    i: Instruction,
    registers: dict[int, Shape],
    windows: Sequence[Shape],
    widest: int,
) -> Shape:
    if i.form is Form.DST_WINDOW:
        return windows[i.window]
    if i.op is Op.IMM:
        return (1, 1, 1, 1)
    if i.op is Op.IOTA:
        return (1, 1, 1, widest)
    sources = [registers[source] for source in i.sources]
    shape = _joined(sources)
    if shape is None:
        raise _error(f"instruction {index}: the operands {sources} do not broadcast")
    if i.op is Op.ROT and i.imm >= shape[-1]:
        raise _error(f"instruction {index}: rotates {shape[-1]} columns by {i.imm}")
    return (*shape[:-1], 1) if i.op in shave.REDUCTIONS else shape


def _joined(shapes: Sequence[Shape]) -> Shape | None:
    """Return the broadcast shape; None if the shapes are incompatible."""
    joined: list[int] = []
    for dims in zip(*shapes, strict=True):
        sizes = {dim for dim in dims if dim != 1}
        if len(sizes) > 1:
            return None
        joined.append(sizes.pop() if sizes else 1)
    return tuple(joined)


_Program = tuple[int, list[Instruction]]
"""A verified program and its number."""


def verify_kernels(memory: AddressSpace, root: RecordArray, platform: Platform, blob: Blob) -> None:
    """Verify all kernels of a loaded mapped inference.

    Args:
        memory: the memory that it was loaded to.
        root: its relocated MAPPED_INFERENCE record.
        platform: the device.
        blob: the blob, which names the operations of tasks.

    Raises:
        KernelError: a program or an argument block breaks a rule, or is not in memory; for a block,
            the message names task and operation.
    """
    verifier = ArgumentVerifier(platform)
    known: dict[bytes, _Program] = {}
    for tile in range(tasks.MAX_TILES):
        ranges = read_list(memory, root["kernel_ranges"][tile], tasks.KERNEL_RANGE, _error)
        programs = [_program(memory, one, known) for one in ranges]
        invocations = root["kernel_invocations"][tile]
        listed = read_list(memory, invocations, tasks.KERNEL_INVOCATION, _error)
        for task, one in enumerate(listed):
            try:
                program, args = _invocation(memory, one, programs)
                verifier.verify(*program, args, tile)
            except KernelError as error:
                name = described(blob, queue_name("shave", tile), task)
                message = f"{name}: {error.message}"
                raise KernelError(message, error.section, error.offset) from None


def _invocation(
    memory: AddressSpace, record: Any, programs: Sequence[_Program]
) -> tuple[_Program, bytes]:
    """Return the program and the argument block of a KERNEL_INVOCATION record."""
    index, size = int(record["range_index"]), int(record["args_size"])
    if index >= len(programs):
        raise _error(f"no kernel range {index} of {len(programs)}")
    if not shave.KERNEL_ARGS.itemsize <= size <= _MAX_ARGS:
        raise _error(f"an argument block has an invalid size of {size} bytes")
    return programs[index], fixed_bytes(memory, int(record["kernel_args"]), size, _error).tobytes()


_MAX_ARGS = shave.KERNEL_ARGS.itemsize + shave.MAX_WINDOWS * shave.WINDOW.itemsize


def _program(memory: AddressSpace, kernel_range: Any, known: dict[bytes, _Program]) -> _Program:
    address, size = int(kernel_range["kernel_entry"]), int(kernel_range["code_size"])
    if size > shave.MAX_INSTRUCTIONS * shave.INSTRUCTION.itemsize:
        raise KernelError(f"a program of {size} bytes is too long", "shave.text", 0)
    code = fixed_bytes(memory, address, size, _error).tobytes()
    if code not in known:
        known[code] = (len(known), verify_program(code))
    return known[code]
