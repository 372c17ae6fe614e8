"""Lowering of DPU workloads: one operation for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from driver_layer.abi.dtypes import DType
from driver_layer.abi.layout import RecordArray
from driver_layer.engines.native.dpu import MatmulProblem, Reuse, choose
from driver_layer.engines.native.dpu.problem import (
    BYTES,
    FEW_ROWS,
    MANY_ROWS,
    NIBBLES,
    MatmulKernel,
    WeightLayout,
)
from driver_layer.engines.native.dpu.words import (
    MOVED_BY_COLUMN,
    MOVED_BY_ROW,
    TABLE_STRIDES,
    Word,
    part_of,
    words_of,
)
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.dpu_operands import (
    operands_of,
    slot_of,
    split_dims_of,
)
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Check,
    Group,
    ParallelDim,
    Reduction,
    Slot,
    Stream,
    Template,
)
from driver_layer.npu.program import DpuWork

_ADDRESSES = {
    word: f"{word.name.lower()}_address"
    for word in (Word.ACT, Word.WEIGHT, Word.OUT, Word.SCALE, Word.ZERO, Word.ACT_SCALE)
}
_OUT = 2
"""Index of the output among operands."""

_PARALLEL_DIMS = (ParallelDim(Word.M, MOVED_BY_ROW), ParallelDim(Word.N, MOVED_BY_COLUMN))
"""Rows of activations and columns of weights; kernels have scratch for any number of both."""

_STREAMS = {
    WeightLayout.K: Stream(Word.WEIGHT, Word.N, Word.WEIGHT_N),
    WeightLayout.N: Stream(Word.WEIGHT, Word.PART_K, Word.WEIGHT_K),
}
"""Weights as a stream, by their layout."""

_PACKING_KEY = tuple(
    word
    for word in Word
    if word.name.startswith(("WEIGHT", "SCALE", "ZERO"))
    or word in (Word.BATCH, Word.N, Word.K, Word.GROUP)
)
"""Arguments that packed weights depend on: addresses, strides and sizes."""

MOST_INTEGERS = 1 << 15
"""Largest k whose sums fit into i32: terms are products of bytes less zero points, up to 255**2.

A workload has at most a quarter of it (``DPU_MAX_DIM``), but several may be fused.
"""

MOST_DIGITS = 1 << 17
"""Largest k for bytes times digits, see ``dpu.digits``, whose sums have sixteen lanes."""

_STRIDES = {
    Word.BATCH: (Word.ACT_B, Word.WEIGHT_B, Word.OUT_B),
    Word.M: (Word.ACT_M, Word.OUT_M, Word.ACT_SCALE_M),
}
"""Strides that are unused if the size is one."""

_VARIANT = ("m_begin", "m_end", "n_begin", "n_end")


def dpu_operations(work: DpuWork, host: Host, check: Check) -> list[Group]:
    """Lower the workloads of a queue, grouped by template.

    Args:
        work: workloads of the queue.
        host: processor that kernels are chosen for.
        check: checks a task in the reference engine.
    """
    owners = np.repeat(np.arange(len(work.registers)), np.diff(work.first))
    registers = work.registers[owners]
    bounds = [work.variants[name].astype(np.int64) for name in _VARIANT]
    keys = np.concatenate([_columns(registers), np.stack(bounds, axis=1)], axis=1)
    first, group_of = equal_rows(keys)
    groups: list[Group] = []
    for number, at in enumerate(first.tolist()):
        members = np.flatnonzero(group_of == number)
        check(int(owners[at]))
        variant = work.variants[at]
        template, pointers = _template(registers[at], variant, host)
        addresses = np.stack(
            [registers[_ADDRESSES[word]][members].astype(np.int64) for word in pointers], axis=1
        )
        groups.append(Group(template, owners[members], addresses))
    return groups


def _columns(registers: RecordArray) -> Ints:
    """Return all registers; for an address, only whether it is set."""
    columns: list[Any] = []
    for name in registers.dtype.names or ():
        values = registers[name]
        if name == "alpha":
            values = values.view("<u4")
        elif name in _ADDRESSES.values():
            values = values != 0
        columns.append(values.reshape(len(registers), -1).astype(np.int64))
    return np.concatenate(columns, axis=1)


def _template(registers: Any, variant: Any, host: Host) -> tuple[Template, list[Word]]:
    """Return the template of a variant, and the words of its slots."""
    m_begin, m_end, n_begin, n_end = (int(variant[name]) for name in _VARIANT)
    words = part_of(words_of(registers, {}), (m_begin, m_end), (n_begin, n_end))
    problem = MatmulProblem.of(registers, m_end - m_begin)
    merges = problem.rows > FEW_ROWS
    if merges:
        problem = replace(problem, rows=MANY_ROWS)
    choice = choose(problem, host)
    operands = operands_of(problem)
    slots = tuple(slot_of(one, words, problem) for one in operands)
    m, n, k = (int(words[word]) for word in (Word.M, Word.N, Word.K))
    words[Word.REUSE] = Reuse.NONE
    for size, strides in _STRIDES.items():
        if words[size] == 1:  # so that equal matmuls have equal arguments
            words[list(strides)] = 0
    packs = merges and choice.keeps_weights(n, k, int(words[Word.GROUP]))
    template = Template(
        choice.spec,
        tuple(words.tolist()),
        slots,
        scratch=choice.scratch(m, n, k),
        cost=_cost(words, slots),
        parallel_dims=_PARALLEL_DIMS if merges else (),
        tile=choice.columns,
        after_merging=partial(_after_merging, problem, host),
        thread_dim=None if merges else _PARALLEL_DIMS[1],
        packing_key=_PACKING_KEY if packs else (),
        reuse=Word.REUSE,
        split_dims=split_dims_of(problem, choice, words),
        reduction=_reduction(problem, choice, (m, n)) if problem.out is DType.FP32 else None,
        stream=_STREAMS.get(problem.layout),
    )
    return template, [one.pointer for one in operands]


def _after_merging(problem: MatmulProblem, host: Host, template: Template, words: Ints) -> Template:
    """Return the template of merged calls, with the kernel for their number of rows."""
    rows, depth = int(words[:, Word.M].max()), int(words[:, Word.K].max())
    choice = choose(replace(problem, rows=min(rows, MANY_ROWS)), host)
    assert template.spec is not None  # else not merged
    if choice.spec.key == template.spec.key:
        return template
    scratch = choice.scratch(rows, choice.columns, depth)
    return replace(template, spec=choice.spec, scratch=scratch, tile=choice.columns, packing_key=())


def _reduction(problem: MatmulProblem, choice: MatmulKernel, sizes: tuple[int, int]) -> Reduction:
    """Return the reduction dimension of a workload of ``sizes`` (m, n)."""
    packed = 2 if problem.weight in NIBBLES else 1
    tables = {Word.SCALE: problem.scale, Word.ZERO: problem.zero}
    return Reduction(
        family=replace(problem, accumulate=False).key,
        accumulates=problem.accumulate,
        max_size=_max_size(problem),
        accumulator=_OUT,
        sizes=(Word.K, Word.PART_K, *(() if problem.has_groups else (Word.GROUP,))),
        group=Word.GROUP if problem.has_groups else NO_WORD,
        pointers=((Word.ACT, Word.ACT_K, 1), (Word.WEIGHT, Word.WEIGHT_K, packed)),
        tables=tuple(
            (at, TABLE_STRIDES[at][1]) for at, kind in tables.items() if kind is not DType.UNSET
        ),
        scratch=lambda k: choice.scratch(*sizes, k),
    )


def _max_size(problem: MatmulProblem) -> int | None:
    if problem.act in BYTES:
        return MOST_INTEGERS
    return MOST_DIGITS if problem.weight in BYTES else None


def _cost(words: Ints, slots: Sequence[Slot]) -> int:
    """Return bytes read, or multiplications / 16 if larger."""
    batch, m, n, k = (int(words[word]) for word in (Word.BATCH, Word.M, Word.N, Word.K))
    return max(sum(one.region.extent for one in slots), batch * m * n * k // 16)
