"""Choice of the kernel that computes a workload."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from driver_layer.engines.native.dpu import (
    axpy,
    digits,
    gemm,
    gemv,
    generic,
    lookups,
    nibble_digits,
    nibbles,
    quads,
    squares,
    tiles,
)
from driver_layer.engines.native.dpu.problem import FEW_ROWS, MANY_ROWS, MatmulKernel, MatmulProblem
from driver_layer.engines.native.jit.host import Host, Isa


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel:
    """Return the fastest kernel that can compute a problem on a host; at least the generic one."""
    many = problem
    if problem.rows > FEW_ROWS:
        many = replace(problem, rows=MANY_ROWS)
    families = [(family, problem) for family in _few_rows(problem, host)]
    for family, one in (*families, (tiles, many), (gemm, many)):
        choice = family.choose(one, host)
        if choice is not None:
            return choice
    return generic.choose(many)


def _few_rows(problem: MatmulProblem, host: Host) -> tuple[ModuleType, ...]:
    """Return the families for few rows, in the order in which they are tried.

    With more than ``FEW_ROWS``, packed weights are faster in tile registers, and without AVX-512,
    where unpacking takes longer.
    """
    if problem.rows > FEW_ROWS and host.isa is not Isa.AVX512:
        return ()
    packed = (nibbles, lookups) if host.dots_bf16_fast else (nibble_digits, lookups, nibbles)
    return squares, *packed, quads, digits, gemv, axpy
