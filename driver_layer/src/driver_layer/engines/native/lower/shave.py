"""Lowering of SHAVE tasks to operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from driver_layer.abi.dtypes import BY_CODE
from driver_layer.abi.shave import GRID_DIMS, KERNEL_ARGS, WINDOW, Instruction
from driver_layer.abi.shave import Access as WindowAccess
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Access,
    Check,
    Dim,
    Group,
    Slot,
    Template,
    slot,
)
from driver_layer.engines.native.shave import Operand, Translated, translate
from driver_layer.npu.program import ShaveWork

_COST_OF_AN_INSTRUCTION = 2
"""Cost of an instruction per element, as the bytes that are read in the same time."""


MOST_KERNELS = 256
"""Limit of kernels of a program; models have some dozens, each may take a second to compile."""


def shave_operations(work: ShaveWork, check: Check, kernels: set[str]) -> list[Group]:
    """Lower the SHAVE tasks of a queue, grouped by program and arguments.

    Args:
        work: tasks of the queue.
        check: checks a task in the reference engine.
        kernels: keys of the program's kernels so far; new keys are added. Beyond
            ``MOST_KERNELS``, the reference engine runs tasks that need further kernels.
    """
    members: dict[tuple[int, bytes], list[int]] = {}
    for index, key in enumerate(zip(work.program_of, work.arguments, strict=True)):
        members.setdefault(key, []).append(index)
    groups: list[Group] = []
    for (program, arguments), tasks in members.items():
        check(tasks[0])
        template, addresses = _lowered(tuple(work.programs[program]), arguments)
        if template.spec is not None and template.spec.key not in kernels:
            if len(kernels) < MOST_KERNELS:
                kernels.add(template.spec.key)
            else:
                template, addresses = _pinned(arguments)
        places = np.tile(np.array(addresses, np.int64), (len(tasks), 1))
        groups.append(Group(template, np.array(tasks), places))
    return groups


@lru_cache(maxsize=4096)
def _lowered(
    program: tuple[Instruction, ...], arguments: bytes
) -> tuple[Template, tuple[int, ...]]:
    """Return a template, and the device addresses of its slots."""
    translated = translate(program, arguments)
    if translated is None:
        return _pinned(arguments)
    words = translated.words
    slots = tuple(_slot(operand, words) for operand in translated.operands)
    template = Template(
        translated.spec,
        words,
        slots,
        scratch=translated.scratch_bytes,
        in_place=True,
        cost=_cost(program, translated),
    )
    return template, tuple(words[operand.word] for operand in translated.operands)


def _slot(operand: Operand, words: Sequence[int]) -> Slot:
    first = operand.word + 1
    dims = [Dim(words[dim], words[first + dim], first + dim) for dim in range(GRID_DIMS)]
    # Kernels are specialised for the column stride.
    dims.append(Dim(operand.cols, words[first + GRID_DIMS], NO_WORD))
    access = Access.READ if operand.loaded else Access(0)
    if operand.stored:
        access |= Access.WRITE
    return slot(operand.word, access, dims, operand.itemsize)


def _cost(program: Sequence[Instruction], translated: Translated) -> int:
    grid = translated.words[0] * translated.words[1] * translated.words[2]
    widest = max((operand.cols for operand in translated.operands), default=1)
    return grid * widest * len(program) * _COST_OF_AN_INSTRUCTION


def _pinned(arguments: bytes) -> tuple[Template, tuple[int, ...]]:
    """Return a template for the reference engine; its windows cannot be redirected."""
    head = np.frombuffer(arguments, KERNEL_ARGS, 1)[0]
    records = np.frombuffer(arguments, WINDOW, int(head["window_count"]), KERNEL_ARGS.itemsize)
    slots = tuple(_pinned_slot(record, head["grid"].tolist()) for record in records)
    return Template(None, (), slots), tuple(records["address"].tolist())


def _pinned_slot(record: Any, grid: Sequence[int]) -> Slot:
    counts = (*grid, int(record["cols"]))
    strides = (*record["strides"].tolist(), int(record["col_stride"]))
    dims = [Dim(count, stride, NO_WORD) for count, stride in zip(counts, strides, strict=True)]
    access = Access(0)
    if record["access"] & WindowAccess.READ:
        access |= Access.READ
    if record["access"] & WindowAccess.WRITE:
        access |= Access.WRITE
    return slot(NO_WORD, access, dims, BY_CODE[int(record["type"])].storage.itemsize)
