"""Conformance checks for any set of engines: ``check_engines(lambda: MyEngines[Run]())``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driver_layer.engines.contract import Engines, Run
from driver_layer.testing.check_engines import dma, dpu, shave
from driver_layer.testing.check_engines.bench import Bench as Bench
from driver_layer.testing.check_engines.bench import one as one

CHECKS: Sequence[Callable[[Bench], None]] = tuple(
    check
    for module in (dma, dpu, shave)
    for name, check in vars(module).items()
    if name.startswith("check_")
)
"""All checks; test frameworks may run them individually."""


def check_engines(make: Callable[[], Engines[Run]]) -> None:
    """Run all checks, each on new engines.

    Raises:
        AssertionError: the engines violate their contract.
    """
    for check in CHECKS:
        check(Bench.make(make()))
