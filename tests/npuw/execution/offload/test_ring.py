"""The slots of offloaded weights: the start of copies, and the state after a failed copy."""

from __future__ import annotations

import os

import numpy as np
import pytest

from npuw_layer.backends.interpreter import HostMemory
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import DeviceError
from npuw_layer.execution.offload.plan import plan_offload
from npuw_layer.execution.offload.ring import LayerWeights, WeightsRing
from npuw_layer.execution.offload.sources import HostBytes, SlotLayout

LAYERS = 5


class Copies:
    """Transfer that copies on the host in ``wait``, and logs its calls."""

    def __init__(self, log, spans) -> None:
        self.log = log
        self.spans = spans
        self.failing = False
        self.interrupt: type[BaseException] | None = None

    @property
    def layer(self) -> int:
        return int(self.spans[0].source.data[0])

    def start(self) -> None:
        self.log.append(f"copy {self.layer}")

    def wait(self) -> None:
        self.log.append(f"wait {self.layer}")
        if self.interrupt is not None:
            raise self.interrupt
        if self.failing:
            raise DeviceError("the link broke")
        for span in self.spans:
            target = span.target.data[span.target_offset :][: span.nbytes]
            target[:] = span.source.data[span.source_offset :][: span.nbytes]


class Machine:
    """Subset of a device that a ring uses."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.recorded: list[Copies] = []

    def allocate(self, nbytes: int) -> HostMemory:
        return HostMemory(np.zeros(nbytes, np.uint8))

    def record_copies(self, spans) -> Copies:
        self.recorded.append(Copies(self.log, spans))
        return self.recorded[-1]


def weights(seed: int = 0) -> LayerWeights:
    layout = SlotLayout.of([TensorInfo("w", "u8", (4,))])
    hosts = [HostMemory(np.full(4, seed + layer, np.uint8)) for layer in range(LAYERS)]
    return LayerWeights(layout, [[HostBytes(host, 0, 4)] for host in hosts])


def ring(machine, ahead, reserved=1, budget=0) -> WeightsRing:
    return WeightsRing(machine, plan_offload(LAYERS, 4, 0, budget, reserved), 4, ahead)


def run(machine, made, its, seed: int = 0) -> list[str]:
    """Run one pass; each layer must find its own weights."""
    machine.log.clear()
    made.begin(its)
    for layer in range(LAYERS):
        made.acquire(its, layer)
        machine.log.append(f"run {layer}")
        assert made.memory(layer).data.tolist() == [seed + layer] * 4
        made.release(its, layer)
    return list(machine.log)


def test_the_copy_of_the_next_layer_starts_before_a_layer_runs():
    machine = Machine()
    made, its = ring(machine, ahead=True), weights()
    first = "copy 0,copy 1,wait 0,run 0,copy 2,wait 1,run 1,copy 3,wait 2,run 2,copy 4"
    assert ",".join(run(machine, made, its)[:11]) == first
    # The next pass begins with the copies that the last one started.
    assert run(machine, made, its)[:4] == ["wait 0", "run 0", "copy 2", "wait 1"]


def test_more_reserved_layers_let_copies_run_further_ahead():
    machine = Machine()
    log = run(machine, ring(machine, ahead=True, reserved=3), weights())
    assert log[:6] == ["copy 0", "copy 1", "copy 2", "copy 3", "wait 0", "run 0"]


def test_a_synchronous_copy_starts_when_its_layer_is_about_to_run():
    machine = Machine()
    made, its = ring(machine, ahead=False), weights()
    for _ in range(2):
        log = run(machine, made, its)
        expected = [
            f"{what} {layer}" for layer in range(LAYERS) for what in ("copy", "wait", "run")
        ]
        assert log == expected


@pytest.mark.parametrize("ahead", [True, False])
def test_layers_that_keep_their_slot_are_copied_once(ahead):
    machine = Machine()
    made, its = ring(machine, ahead, budget=16), weights()
    run(machine, made, its)
    for _ in range(2):
        before = made.traffic.copies
        log = run(machine, made, its)
        copied = [each for each in log if each.startswith("copy")]
        assert len(copied) == made.traffic.copies - before == 2  # of 5 layers in 4 slots
    assert made.traffic.nbytes == 4 * made.traffic.copies


@pytest.mark.parametrize("ahead", [True, False])
def test_two_models_may_use_the_slots_in_turn(ahead):
    machine = Machine()
    made, one, other = ring(machine, ahead), weights(), weights(100)
    for its, seed in ((one, 0), (other, 100), (one, 0), (one, 0), (other, 100)):
        run(machine, made, its, seed)


@pytest.mark.parametrize("layer", [0, 3])
@pytest.mark.parametrize("ahead", [True, False])
def test_the_next_pass_repeats_a_failed_copy(ahead, layer):
    machine = Machine()
    made, its = ring(machine, ahead), weights()
    run(machine, made, its)
    broken = next(each for each in machine.recorded if each.layer == layer)
    broken.failing = True
    with pytest.raises(DeviceError, match="the link broke"):
        run(machine, made, its)
    broken.failing = False
    run(machine, made, its)


def test_a_failed_copy_that_is_no_longer_needed_is_ignored():
    """Another model takes the slot: pending copies of the previous model do not matter."""
    machine = Machine()
    made, one, other = ring(machine, ahead=True), weights(), weights(100)
    run(machine, made, one)  # ends with copies for its next pass
    for each in machine.recorded:
        each.failing = True
    for _ in range(2):
        run(machine, made, other, 100)


def test_after_an_interrupted_wait_the_copy_ends_before_the_slot_is_overwritten():
    machine = Machine()
    made, its = ring(machine, ahead=True), weights()
    run(machine, made, its)
    arriving = next(each for each in machine.recorded if each.layer == 0)
    arriving.interrupt = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        run(machine, made, its)
    arriving.interrupt = None
    assert run(machine, made, its)[:4] == ["wait 0", "copy 0", "wait 0", "run 0"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_copies_of_its_parent():
    machine = Machine()
    made, its = ring(machine, ahead=True), weights()
    run(machine, made, its)
    with made.turn:
        child = os.fork()
        if child == 0:
            free = made.turn.acquire(timeout=30)
            os._exit(0 if free and run(machine, made, its)[0] == "copy 0" else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert run(machine, made, its)[0] == "wait 0"
