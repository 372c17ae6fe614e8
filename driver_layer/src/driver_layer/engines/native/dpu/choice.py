"""Chooses the kernel that computes a workload."""

from __future__ import annotations

from driver_layer.engines.native.dpu import gemv, generic
from driver_layer.engines.native.dpu.problem import Choice, Problem
from driver_layer.engines.native.jit.host import Host


def choose(problem: Problem, host: Host) -> Choice:
    """Give the fastest kernel that can compute a problem on a host; there always is one."""
    return gemv.choose(problem, host) or generic.choose(problem)
