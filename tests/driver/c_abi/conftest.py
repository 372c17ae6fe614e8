"""Fixtures: the library, whose driver is a process of its own, and a device behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver.c_abi.direct import DirectNpu, border
from tests.driver.c_abi.library import SUCCESS, Npu, Rig

from driver_layer.c_abi.build import LOADER, compiler, library
from driver_layer.c_abi.declarations import at


@pytest.fixture(scope="session")
def built() -> Path:
    """Folder of the library."""
    if compiler() is None:
        pytest.skip("no C compiler")
    return library()


@pytest.fixture(scope="session")
def npu(built: Path) -> Npu:
    """The library in this process."""
    made = Npu(built / "loader" / LOADER)
    assert made.zeInit(0) == SUCCESS
    return made


@pytest.fixture(scope="module")
def direct_npu() -> Iterator[DirectNpu]:
    """The border without the library: the driver is this process."""
    with border() as made:
        assert made.zeInit(0) == SUCCESS
        yield made


@pytest.fixture
def rig(npu: Npu) -> Iterator[Rig]:
    """A device in the driver's process."""
    yield from _rig(npu)


@pytest.fixture
def direct(direct_npu: DirectNpu) -> Iterator[Rig]:
    """A device in this process, where tests can look into it."""
    yield from _rig(direct_npu)


def _rig(npu: Any) -> Iterator[Rig]:
    made = Rig(npu, 0, 0, 0, 0, [])
    one = made.buffer((1).to_bytes(4, "little"))
    kinds = made.struct("ze_init_driver_type_desc_t", flags=2)
    result = made.buffer(bytes(8))
    assert npu.zeInitDrivers(one, result, kinds) == SUCCESS
    made.driver = at("uint64_t", result)[0]
    assert npu.zeDeviceGet(made.driver, one, result) == SUCCESS
    made.device = at("uint64_t", result)[0]
    npu.add_extensions(made.driver)
    made.context = npu.make("zeContextCreate", made.driver, made.struct("ze_context_desc_t"))
    desc = made.struct("ze_command_queue_desc_t")
    made.queue = npu.make("zeCommandQueueCreate", made.context, made.device, desc)
    yield made
    assert npu.zeCommandQueueDestroy(made.queue) == SUCCESS
    assert npu.zeContextDestroy(made.context) == SUCCESS
