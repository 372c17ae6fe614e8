"""Lifetime of device memory: as long as it is needed, and no longer."""

from __future__ import annotations

import gc
import mmap
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.npu.management import ManagementCore
from driver_layer.npu.shareable import CAN_SHARE
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.backends.protocols import Program
from npuw_layer.errors import DeviceError
from npuw_layer.testing.check_device import CONFIG, small_graph, weights

SHARES = pytest.mark.skipif(not CAN_SHARE, reason="weights are shared on Linux")
SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


@pytest.fixture
def device() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def say(request, ids: list[int], said: int = 0) -> np.ndarray:
    count = len(ids)
    return request.infer(
        {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, said + count), np.int64),
            "position_ids": np.arange(said, said + count)[None],
        }
    )["logits"]


def test_deleted_requests_leak_no_memory(device, tiny: Path) -> None:
    compiled = Core(device=device).compile_model(tiny, "NPU", SMALL)
    used: set[int] = set()
    for _ in range(4):
        request = compiled.create_infer_request()
        say(request, [1, 2, 3])
        say(request, [4], 3)
        del request
        used.add(device.allocated_bytes)
    assert len(used) == 1


def test_memory_freed_in_a_collection_returns_with_the_next_request(device) -> None:
    """The collection may run where the driver holds its lock."""
    before = device.allocated_bytes
    cycle: list[object] = [device.allocate(1 << 20)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert device.allocated_bytes >= before + (1 << 20)
    kept = device.allocate(4096)
    assert device.allocated_bytes == before + kept.data.size


def test_a_program_keeps_the_memory_that_it_is_bound_to(device) -> None:
    program = device.load(device.compile(small_graph(), CONFIG)).create_program()
    x, total = (np.random.default_rng(seed).standard_normal((4, 16)) for seed in range(2))
    out = device.allocate(4 * 4 * 8)
    program.bind("y", out, 0)
    for name, values in (("x", x), ("vpux_ie_read_value_sum", total)):
        memory = device.allocate(4 * values.size)
        memory.data[: 4 * values.size] = values.astype(np.float32).reshape(-1).view(np.uint8)
        program.bind(name, memory, 0)
    program.bind("vpux_ie_assign_sum", device.allocate(4 * x.size), 0)
    del memory
    others = [device.allocate(4 * x.size) for _ in range(4)]
    for other in others:
        other.data[:] = 255
    program.run()
    found = out.data[: 4 * 4 * 8].view(np.float32).reshape(4, 8)
    np.testing.assert_allclose(found, (x + total) @ weights(), rtol=1e-4, atol=1e-4)


def test_rows_of_a_failed_prompt_are_never_read(device, tiny, monkeypatch) -> None:
    """A failing run may have written anything to its rows."""
    one_run = {**SMALL, "NPUW_LLM_PREFILL_HINT": "STATIC"}
    compiled = Core(device=device).compile_model(tiny, "NPU", one_run)
    request, fresh = (compiled.create_infer_request() for _ in range(2))
    cache = request._conversation.cache

    def fail(self: RecordedProgram) -> None:
        for rows in cache.between(0, 128):
            rows[...] = np.inf
        raise DeviceError("lost")

    with monkeypatch.context() as patched:
        patched.setattr(RecordedProgram, "run", fail)
        with pytest.raises(DeviceError, match="lost"):
            say(request, list(range(90)))
    for token in range(20):
        assert np.array_equal(say(request, [token], token), say(fresh, [token], token))


def bound(device: LevelZeroDevice) -> Program:
    """Return a program with memory for all its inputs and outputs."""
    loaded = device.load(device.compile(small_graph(), CONFIG))
    program = loaded.create_program()
    for info in (*loaded.inputs, *loaded.outputs):
        program.bind(info.name, device.allocate(1024), 0)
    return program


def test_loaded_mapped_and_shared_memory_is_freed_with_its_last_owner(device) -> None:
    made: list[Callable[[], object]] = [
        lambda: bound(device).run(),
        lambda: device.map_host(np.frombuffer(mmap.mmap(-1, 1 << 20), np.uint8)),
    ]
    if CAN_SHARE:
        made.append(lambda: device.allocate_shared(1 << 20))
    for make in made:
        make()
        assert device.allocated_bytes == 0


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
        pytest.param({"NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}, marks=SHARES),
    ],
)
def test_a_deleted_model_leaks_no_device_memory(
    device, tall: Path, options, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for _ in range(2):
        compiled = Core(device=device).compile_model(tall, "NPU", SMALL | options)
        say(compiled.create_infer_request(), [1, 2, 3])
        del compiled
        gc.collect()
        kept = device.allocate(4096)
        assert device.allocated_bytes == kept.data.size
        del kept


@contextmanager
def interruptible() -> Iterator[None]:
    """Make interrupts raise: a test run in the background inherits an ignored SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupted_run_ends_when_the_device_is_done(device, monkeypatch) -> None:
    """The caller must not write to memory that the device still reads."""
    program = bound(device)
    program.run()
    done = threading.Event()

    def interrupt(*_: object) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        done.set()

    with monkeypatch.context() as patched:
        patched.setattr(ManagementCore, "run_inference", interrupt)
        with interruptible(), pytest.raises(KeyboardInterrupt):
            program.run()
    assert done.is_set()
    program.run()


def test_an_interrupt_during_submission_also_waits_for_the_device(device, monkeypatch) -> None:
    """The interrupt comes when the device has its work, and no thread waits for it yet."""
    program = bound(device)
    program.run()
    done = threading.Event()
    hand_over = ze.zeCommandQueueExecuteCommandLists

    def interrupted(*work: Any) -> None:
        hand_over(*work)
        raise KeyboardInterrupt

    def slow(*_: object) -> None:
        time.sleep(0.2)
        done.set()

    with monkeypatch.context() as patched:
        patched.setattr(ManagementCore, "run_inference", slow)
        patched.setattr(ze, "zeCommandQueueExecuteCommandLists", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.run()
    assert done.is_set()
    program.run()
