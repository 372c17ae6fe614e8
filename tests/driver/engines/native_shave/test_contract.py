"""Conformance of native SHAVE, with the reference as fallback, to the contract of engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from driver_layer.abi.shave import Instruction
from driver_layer.engines.contract import Run
from driver_layer.engines.native.shave import translate
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.npu.bus import Bus
from driver_layer.testing.check_engines import CHECKS, Bench

_OF_SHAVE = [check for check in CHECKS if check.__module__.endswith(".shave")]


@pytest.mark.matrix
@pytest.mark.parametrize("check", _OF_SHAVE, ids=lambda check: check.__name__)
def test_engine_contract(benches, hosted, check: Callable[[Bench], None]) -> None:
    native = benches[max(benches)]

    class Engines(ReferenceEngines):
        def shave(self, program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Run:
            reference = super().shave(program, args, tile, bus)
            kernel = translate(tuple(program), args)
            if kernel is None:
                return reference
            placed = hosted(kernel, lambda address: bus.cmx.view(address, 1).ctypes.data)
            return lambda: native.call(placed)

    check(Bench.make(Engines()))
