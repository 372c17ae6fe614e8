"""Choice of the kernel that computes a workload."""

from __future__ import annotations

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
    tiles,
)
from driver_layer.engines.native.dpu.problem import MatmulKernel, MatmulProblem
from driver_layer.engines.native.jit.host import Host


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel:
    """Return the fastest kernel that can compute a problem on a host; at least the generic one."""
    packed = nibble_digits, lookups, nibbles
    if host.dots_bf16_fast:
        packed = nibbles, lookups
    for family in (*packed, quads, digits, gemv, axpy, tiles, gemm):
        choice = family.choose(problem, host)
        if choice is not None:
            return choice
    return generic.choose(problem)
