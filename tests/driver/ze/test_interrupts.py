"""Signal handlers that raise at any bytecode of a call leave objects consistent."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.driver.interrupted import interruptions

from driver_layer import ze
from driver_layer.abi.elf import SectionType
from driver_layer.loader import hpi, place
from driver_layer.loader.read import read_blob
from driver_layer.npu.memory import AddressSpace, MemoryKind
from driver_layer.npu.stream import Stream
from driver_layer.testing.blobs import dense_blob, is_expected
from driver_layer.ze import command_list, command_queue, context, event, graph, graph_table

POOL = ze.ze_event_pool_desc_t(1)
PLACE = ze.ze_event_desc_t(0)


@pytest.fixture
def closed(monkeypatch) -> list[int]:
    """Descriptors that were closed during the test."""
    numbers: list[int] = []
    close = os.close

    def note(number: int) -> None:
        close(number)
        numbers.append(number)

    monkeypatch.setattr(os, "close", note)
    return numbers


def allocated(rig) -> int:
    return rig.table.pfnQueryContextMemory(rig.context).allocated


@pytest.mark.parametrize("exported", [False, True])
def test_an_interrupted_free_can_be_repeated(rig, closed, exported) -> None:
    memory: ze.Memory | None = None

    def make() -> ze.Memory:
        made = rig.exportable() if exported else ze.zeMemAllocHost(rig.context, 100)
        if exported:
            ze.zeMemGetIpcHandle(rig.context, made)
        return made

    def free() -> None:
        assert memory is not None
        ze.zeMemFree(rig.context, memory)

    memory = make()
    before = allocated(rig)
    for _ in interruptions(free, rig.context.space._lock):
        if memory in rig.context.memory.values():
            free()
        assert allocated(rig) == before - memory.size
        assert len({*closed}) == len(closed), "a descriptor is closed once"
        closed.clear()
        memory = make()


def test_repeating_a_free_does_not_free_new_memory_at_the_same_address(rig) -> None:
    memory = ze.zeMemAllocHost(rig.context, 100)
    rig.context.space.free(memory.allocation)
    rig.context.space._next.clear()
    other = ze.zeMemAllocHost(rig.context, 100)
    assert other.address == memory.address
    ze.zeMemFree(rig.context, memory)
    assert rig.context.find(other.address) is other


class TestEvents:
    def test_an_interrupted_creation_occupies_no_index(self, rig) -> None:
        pool = ze.zeEventPoolCreate(rig.context, POOL)
        for _ in interruptions(lambda: ze.zeEventCreate(pool, PLACE), inside=[event.__name__]):
            ze.zeEventDestroy(ze.zeEventCreate(pool, PLACE))
        ze.zeEventPoolDestroy(pool)

    def test_an_interrupted_destruction_can_be_repeated(self, rig) -> None:
        pool = ze.zeEventPoolCreate(rig.context, POOL)
        made = ze.zeEventCreate(pool, PLACE)
        lock = rig.device.npu.doorbell._bell.lock

        def end() -> None:
            ze.zeEventDestroy(made)

        for _ in interruptions(end, lock):
            if made.alive:
                ze.zeEventDestroy(made)
            assert not pool.events
            made = ze.zeEventCreate(pool, PLACE)

    def test_repeating_a_destruction_keeps_a_new_event_at_the_same_index(self, rig) -> None:
        pool = ze.zeEventPoolCreate(rig.context, POOL)
        made = ze.zeEventCreate(pool, PLACE)
        del pool.events[0]
        other = ze.zeEventCreate(pool, PLACE)
        ze.zeEventDestroy(made)
        assert pool.events[0] is other


LOADING = [module.__name__ for module in (graph, graph_table, command_list)]


class TestGraphs:
    @pytest.fixture(autouse=True)
    def unprepared(self, rig, monkeypatch) -> None:
        """Disable the device's preparation, so that only recording is interrupted."""
        monkeypatch.setattr(rig.device.npu, "prepare", lambda *_: None)

    def test_an_interrupted_load_can_be_repeated(self, rig, x) -> None:
        made = rig.graph(dense_blob())
        inside = [graph.__name__]

        def load() -> None:
            rig.table.pfnGraphInitialize(made)

        for _ in interruptions(load, inside=inside):
            y = rig.arguments(made, x)
            rig.execute(rig.recorded(made))
            assert is_expected(rig.values(y), x)
            rig.table.pfnDestroy(made)
            made = rig.graph(dense_blob())

    def test_an_interrupted_recording_loses_no_inference(self, rig, x) -> None:
        made = rig.graph(dense_blob())
        y = rig.arguments(made, x)
        before = allocated(rig)
        ze.zeCommandListDestroy(rig.recorded(made))
        for _ in interruptions(lambda: rig.recorded(made), inside=[graph.__name__]):
            commands = rig.recorded(made)
            y.data[:] = 0
            rig.execute(commands)
            assert is_expected(rig.values(y), x)
            ze.zeCommandListDestroy(commands)
            assert len(made._holders) < 4, "inferences of recordings are reused"
        rig.table.pfnDestroy(made)
        assert allocated(rig) == before

    @pytest.mark.parametrize("end", [ze.zeCommandListReset, ze.zeCommandListDestroy])
    def test_an_interrupted_reset_returns_each_inference_at_most_once(self, rig, x, end) -> None:
        made = rig.graph(dense_blob())
        rig.arguments(made, x)
        commands = rig.recorded(made)

        def empty() -> None:
            end(commands)

        for _ in interruptions(empty, inside=LOADING):
            other = rig.recorded(made)
            if commands.alive:
                end(commands)  # repeated: the other recording keeps its inference
            own = other.commands[0].execution
            assert isinstance(own, graph.GraphExecution)
            assert [by() for by in made._holders.values() if by is not None] == [own]
            ze.zeCommandListDestroy(other)
            rig.table.pfnDestroy(made)
            made = rig.graph(dense_blob())
            rig.arguments(made, x)
            commands = rig.recorded(made)

    def test_an_interrupted_unload_can_be_repeated(self, rig) -> None:
        made = rig.graph(dense_blob())
        before = allocated(rig)
        unload, inside = rig.table.pfnDestroy, [*LOADING, hpi.__name__]
        rig.table.pfnGraphInitialize(made)

        def end() -> None:
            unload(made)

        for _ in interruptions(end, inside=inside):
            if made.alive:
                unload(made)
            assert allocated(rig) == before
            made = rig.graph(dense_blob())
            rig.table.pfnGraphInitialize(made)


@pytest.fixture
def two_sections() -> place.Blob:
    """A blob with one section that all users share and one that each user copies."""
    blob = read_blob(dense_blob())
    patched = {section.info for section in blob.of_type(SectionType.SHT_RELA)}
    found = {
        place._is_shared(section, patched): section
        for section in blob.sections
        if place.needs_memory(section)
    }
    assert len(found) == 2
    return replace(blob, sections=tuple(found.values()))


class TestPlacements:
    INSIDE = (place.__name__,)

    def test_an_interrupted_placement_does_not_count_as_a_user(self, two_sections) -> None:
        space = AddressSpace()
        first = place.place(two_sections, space, None)
        for _ in interruptions(lambda: place.place(two_sections, space, first), inside=self.INSIDE):
            assert {*first.shared.users} == {first.user}
        for made in space.allocations():
            if made not in first.allocations.values():
                space.free(made)  # the interrupted call did not return it
        first.free()
        assert not space.allocations()

    def test_an_interrupted_free_of_a_placement_can_be_repeated(self, two_sections) -> None:
        space = AddressSpace()
        first = place.place(two_sections, space, None)
        second = place.place(two_sections, space, first)

        def end_second() -> None:
            second.free()

        def end_first() -> None:
            first.free()

        for _ in interruptions(end_second, inside=self.INSIDE):
            second.free()
            assert {*space.allocations()} == {*first.allocations.values()}
            second = place.place(two_sections, space, first)
        for _ in interruptions(end_first, inside=self.INSIDE):
            first.free()
            assert not space.allocations()
            first = place.place(two_sections, space, None)


def test_a_list_with_an_interrupted_submission_is_idle_once_the_queue_is(rig) -> None:
    gate, stopped, ran = threading.Event(), threading.Event(), list[int]()

    def recorded(run: Callable[[], object]) -> ze.ze_command_list_handle_t:
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        commands.append(run)
        ze.zeCommandListClose(commands)
        return commands

    def hold() -> None:
        stopped.set()
        gate.wait(60)

    stop, commands = recorded(hold), recorded(lambda: ran.append(1))

    def submit() -> None:
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands])

    def stop_device() -> None:
        gate.clear(), stopped.clear(), ran.clear()
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [stop])
        assert stopped.wait(60)

    stop_device()
    stream = rig.queue.stream
    inside = [module.__name__ for module in (command_queue, context)] + [Stream.__module__]
    for _ in interruptions(submit, stream._submitting, inside=inside):
        submitted = not stream._server.jobs.empty()
        with suppress(ze.ZeError):
            ze.zeCommandListReset(commands)
            assert not submitted, "a submitted list cannot be reset"
            commands.append(lambda: ran.append(1))
            ze.zeCommandListClose(commands)
        gate.set()
        ze.zeCommandQueueSynchronize(rig.queue)
        assert len(ran) == submitted
        ze.zeCommandListReset(commands)
        commands.append(lambda: ran.append(1))
        ze.zeCommandListClose(commands)
        stop_device()
    gate.set()
    ze.zeCommandQueueSynchronize(rig.queue)


def test_an_interrupted_preparation_leaves_the_engines_free(rig, x) -> None:
    made = rig.graph(dense_blob())
    y = rig.arguments(made, x)
    commands = rig.recorded(made)
    inference = made._original
    npu, space = rig.device.npu, rig.context.space
    lock = npu._work.core
    inside = ["driver_layer.npu.device", "driver_layer.npu.turns"]
    place = inference.footprint()
    for _ in interruptions(
        lambda: npu.prepare(space, inference.address, place), lock, inside=inside
    ):
        y.data[:] = 0
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands])
        ze.zeCommandQueueSynchronize(rig.queue, 60 * 10**9)
        assert is_expected(rig.values(y), x)


def test_an_interrupted_restart_of_a_stream_in_a_fork_can_be_repeated() -> None:
    stream = Stream("test")
    stream.submit(lambda: None).wait()
    stream._submitting.acquire()  # held by a thread that the fork does not have

    def begin() -> None:
        stream._process = -1  # as a fork sees it
        stream._look_where()

    for _ in interruptions(begin, inside=[Stream.__module__]):
        assert stream.submit(lambda: None).wait(60)
        stream.join()
        stream._submitting.acquire()


def test_a_free_during_the_check_of_a_program_is_detected_by_the_next_check(rig) -> None:
    from driver_layer.npu.management import _Prepared

    space = AddressSpace()
    first, second = (space.allocate(8, MemoryKind.DMA) for _ in range(2))
    made = _Prepared(lambda: None, (), (first, second), space.frees)
    space.free(space.allocate(8, MemoryKind.DMA))
    find = space.find

    def then_free(address: int):
        found = find(address)
        if address == second.address and found is second:
            space.free(second)
        return found

    space.find = then_free
    assert made.in_place(space)  # it was in place when it was checked
    assert not made.in_place(space)
