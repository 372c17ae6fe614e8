"""Conformance of the reference engines to the contract of engines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi.tasks import DMA_DESCRIPTOR
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.testing.check_engines import CHECKS, Bench, check_engines, one


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_engine_contract(check: Callable[[Bench], None]) -> None:
    check(Bench.make(ReferenceEngines()))


def test_the_contract_suite_fails_for_engines_that_do_nothing() -> None:
    class Idle:
        def dma(self, *_: object) -> Callable[[], None]:
            return lambda: None

        dpu = shave = dma

    with pytest.raises(AssertionError):
        check_engines(Idle)  # pyright: ignore[reportArgumentType]


@settings(max_examples=18, deadline=None)
@given(data=st.data(), itemsize=st.sampled_from([1, 2, 4, 8]))
def test_any_strided_copy_equals_numpys(data: st.DataObject, itemsize: int) -> None:
    """Copies of up to five dimensions, from a slice of a larger array to a dense one."""
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    margin = [d + data.draw(st.integers(0, 2)) for d in shape]
    kind = f"<u{itemsize}"
    source = np.arange(np.prod(margin), dtype=kind).reshape(margin)
    bench = Bench.make(ReferenceEngines())
    target = bench.ddr(np.zeros(shape, kind))
    fields = {
        "cfg": len(shape),
        "src": bench.ddr(source),
        "dst": target,
        "src_width": itemsize,
        "dst_width": itemsize,
    }
    dense = np.zeros(shape, kind).strides
    for number, axis in enumerate(reversed(range(len(shape))), 1):
        fields[f"src_dim{number}"] = fields[f"dst_dim{number}"] = shape[axis] - 1
        fields[f"src_stride{number}"] = source.strides[axis]
        fields[f"dst_stride{number}"] = dense[axis]
    bench.engines.dma(one(DMA_DESCRIPTOR, **fields), bench.bus)()
    moved = bench.read(target, kind, int(np.prod(shape))).reshape(shape)
    assert np.array_equal(moved, source[tuple(slice(d) for d in shape)])
