"""Events and concurrent queues: waits, and the ends of waits."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from driver_layer import ze
from driver_layer.errors import DeviceFault
from driver_layer.npu.doorbell import Doorbell
from driver_layer.testing.blobs import dense_blob, is_expected
from driver_layer.ze import ze_result_t as r

SECOND = 1_000_000_000
COPIES = ze.ze_command_list_desc_t(commandQueueGroupOrdinal=1)


@pytest.fixture
def pool(rig):
    return ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(4), [rig.device])


@pytest.fixture
def events(pool):
    return [ze.zeEventCreate(pool, ze.ze_event_desc_t(index)) for index in range(4)]


@pytest.fixture
def copy_queue(rig):
    return ze.zeCommandQueueCreate(rig.context, rig.device, ze.ze_command_queue_desc_t(ordinal=1))


def submitted(rig, queue, record, desc=None):
    """Record a list, close it, and submit it to a queue."""
    commands = ze.zeCommandListCreate(rig.context, rig.device, desc)
    record(commands)
    ze.zeCommandListClose(commands)
    ze.zeCommandQueueExecuteCommandLists(queue, [commands])
    return commands


class TestEvents:
    def test_the_host_signals_resets_and_queries_events(self, rig, events) -> None:
        event = events[0]
        assert ze.zeEventQueryStatus(event) is r.ZE_RESULT_NOT_READY
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: ze.zeEventHostSynchronize(event, 1000))
        ze.zeEventHostSignal(event)
        ze.zeEventHostSynchronize(event)
        assert ze.zeEventQueryStatus(event) is r.ZE_RESULT_SUCCESS
        ze.zeEventHostReset(event)
        assert ze.zeEventQueryStatus(event) is r.ZE_RESULT_NOT_READY

    def test_each_event_has_its_own_index_in_its_pool(self, rig, pool, events) -> None:
        create = ze.zeEventCreate
        for index in (-1, 0, 4):
            desc = ze.ze_event_desc_t(index)
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda desc=desc: create(pool, desc))
        rig.fails(r.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, lambda: ze.zeEventPoolDestroy(pool))
        for event in events:
            ze.zeEventDestroy(event)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeEventHostSignal(events[0]))
        ze.zeEventPoolDestroy(pool)
        empty = ze.ze_event_pool_desc_t(0)
        make = ze.zeEventPoolCreate
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: make(rig.context, empty))

    def test_unsupported_and_unknown_flags_are_rejected(self, rig, pool) -> None:
        flags = ze.ze_event_pool_flags_t
        visible = flags.ZE_EVENT_POOL_FLAG_HOST_VISIBLE
        ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(1, visible))
        for asked, code in (
            (visible | flags.ZE_EVENT_POOL_FLAG_IPC, r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION),
            (flags.ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP, r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION),
            (16, r.ZE_RESULT_ERROR_INVALID_ENUMERATION),
        ):
            desc = ze.ze_event_pool_desc_t(1, asked)
            rig.fails(code, lambda desc=desc: ze.zeEventPoolCreate(rig.context, desc))
        host = ze.ze_event_scope_flags_t.ZE_EVENT_SCOPE_FLAG_HOST
        ze.zeEventCreate(pool, ze.ze_event_desc_t(0, host, host))
        create = ze.zeEventCreate
        for desc in (ze.ze_event_desc_t(1, signal=8), ze.ze_event_desc_t(1, wait=8)):
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ENUMERATION, lambda desc=desc: create(pool, desc))

    def test_a_wait_that_saw_a_signal_succeeds_although_the_event_is_reset_afterwards(
        self, events, monkeypatch
    ) -> None:
        wait = Doorbell.wait

        def then_reset(self, *args) -> bool:
            found = wait(self, *args)
            ze.zeEventHostReset(events[0])
            return found

        ze.zeEventHostSignal(events[0])
        monkeypatch.setattr(Doorbell, "wait", then_reset)
        ze.zeEventHostSynchronize(events[0])

    @pytest.mark.parametrize("timeout", [1 << 63, ze.UINT64_MAX - 1, ze.UINT64_MAX])
    def test_any_64_bit_timeout_is_accepted(self, events, timeout) -> None:
        threading.Timer(0.05, lambda: ze.zeEventHostSignal(events[0])).start()
        ze.zeEventHostSynchronize(events[0], timeout)

    def test_a_list_waits_for_the_hosts_signal(self, rig, events) -> None:
        memory = ze.zeMemAllocShared(rig.context, 8, 0, rig.device)

        def record(commands) -> None:
            ze.zeCommandListAppendWaitOnEvents(commands, [events[0]])
            ze.zeCommandListAppendMemoryFill(commands, memory, b"\7", 8, events[1])
            ze.zeCommandListAppendEventReset(commands, events[0])

        submitted(rig, rig.queue, record)
        sync = ze.zeCommandQueueSynchronize
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: sync(rig.queue, SECOND // 100))
        assert not memory.data.any()
        ze.zeEventHostSignal(events[0])
        ze.zeEventHostSynchronize(events[1], 60 * SECOND)
        assert memory.data.tolist() == [7] * 8
        sync(rig.queue)
        assert ze.zeEventQueryStatus(events[0]) is r.ZE_RESULT_NOT_READY

    def test_lists_on_two_compute_queues_may_wait_for_each_other(self, rig, events) -> None:
        other = ze.zeCommandQueueCreate(rig.context, rig.device)

        def first(commands) -> None:
            ze.zeCommandListAppendSignalEvent(commands, events[0])
            ze.zeCommandListAppendBarrier(commands, events[2], [events[1]])

        def second(commands) -> None:
            ze.zeCommandListAppendBarrier(commands, events[1], [events[0]])

        submitted(rig, rig.queue, first)
        submitted(rig, other, second)
        ze.zeEventHostSynchronize(events[2], 60 * SECOND)

    def test_waits_for_the_events_of_a_failing_list_fail(self, rig, events, copy_queue) -> None:
        def fail() -> None:
            raise DeviceFault("a task failed")

        def failing(commands) -> None:
            commands.append(fail)
            ze.zeCommandListAppendSignalEvent(commands, events[0])

        def waiting(commands) -> None:
            ze.zeCommandListAppendBarrier(commands, events[1], [events[0]])

        submitted(rig, rig.queue, waiting)
        submitted(rig, copy_queue, failing, COPIES)
        for call in (
            lambda: ze.zeCommandQueueSynchronize(rig.queue, 60 * SECOND),
            lambda: ze.zeEventHostSynchronize(events[1], 60 * SECOND),
        ):
            assert "a task failed" in str(rig.fails(r.ZE_RESULT_ERROR_DEVICE_LOST, call))
        assert ze.zeEventQueryStatus(events[0]) is r.ZE_RESULT_ERROR_DEVICE_LOST

    def test_destroying_an_event_ends_waits_for_it(self, rig, events) -> None:
        waiting = ze.zeCommandListAppendWaitOnEvents
        submitted(rig, rig.queue, lambda commands: waiting(commands, [events[3]]))
        ze.zeEventDestroy(events[3])
        sync = ze.zeCommandQueueSynchronize
        error = rig.fails(r.ZE_RESULT_ERROR_DEVICE_LOST, lambda: sync(rig.queue, 60 * SECOND))
        assert "destroyed" in str(error)

    def test_events_of_another_context_are_rejected(self, rig, events) -> None:
        other = ze.zeContextCreate(rig.device.driver)
        commands = ze.zeCommandListCreate(other, rig.device)
        rig.fails(
            r.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT,
            lambda: ze.zeCommandListAppendSignalEvent(commands, events[0]),
        )
        rig.fails(
            r.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT,
            lambda: ze.zeCommandListAppendEventReset(commands, events[0]),
        )
        wait = ze.zeCommandListAppendWaitOnEvents
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: wait(commands, []))

    def test_running_lists_complete_before_the_process_ends(self) -> None:
        script = """
import time
from driver_layer import ze
(driver,) = ze.zeInitDrivers()
(device,) = ze.zeDeviceGet(driver)
context = ze.zeContextCreate(driver)
commands = ze.zeCommandListCreate(context, device)
commands.append(lambda: time.sleep(0.5))
commands.append(lambda: print("done", flush=True))
ze.zeCommandListClose(commands)
queue = ze.zeCommandQueueCreate(context, device)
ze.zeCommandQueueExecuteCommandLists(queue, [commands])
print("ends", flush=True)
"""
        assert self.output_of(script) == "ends\ndone\n"

    def test_a_wait_for_a_signal_that_never_comes_does_not_keep_the_process(self) -> None:
        """The process ends even if the host does not synchronize with the queue."""
        script = """
from driver_layer import ze
(driver,) = ze.zeInitDrivers()
(device,) = ze.zeDeviceGet(driver)
context = ze.zeContextCreate(driver)
pool = ze.zeEventPoolCreate(context, ze.ze_event_pool_desc_t(1))
never = ze.zeEventCreate(pool, ze.ze_event_desc_t(0))
commands = ze.zeCommandListCreate(context, device)
ze.zeCommandListAppendWaitOnEvents(commands, [never])
ze.zeCommandListClose(commands)
queue = ze.zeCommandQueueCreate(context, device)
ze.zeCommandQueueExecuteCommandLists(queue, [commands])
print("ends")
"""
        assert self.output_of(script) == "ends\n"

    @staticmethod
    def output_of(script: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


class TestCopyQueue:
    def test_a_copy_runs_concurrently_with_an_inference(self, rig, events, copy_queue, x) -> None:
        """The inference cannot end before the copy, as it waits for the copy's event."""
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        source = ze.zeMemAllocHost(rig.context, 1 << 20)
        target = ze.zeMemAllocDevice(rig.context, 1 << 20, 0, rig.device)
        back = ze.zeMemAllocHost(rig.context, 1 << 20)
        source.data[:] = 3

        def compute(commands) -> None:
            ze.zeCommandListAppendSignalEvent(commands, events[0])
            rig.table.pfnAppendGraphExecute(commands, graph, None, events[2], [events[1]])

        def copy(commands) -> None:
            append = ze.zeCommandListAppendMemoryCopy
            append(commands, target, source, 1 << 20, None, [events[0]])
            append(commands, back, target, 1 << 20, events[1])

        submitted(rig, rig.queue, compute)
        submitted(rig, copy_queue, copy, COPIES)
        ze.zeEventHostSynchronize(events[2], 60 * SECOND)
        assert is_expected(rig.values(y), x)
        assert (back.data == 3).all()

    def test_a_copy_queue_rejects_graphs_and_compute_lists(self, rig, copy_queue, x) -> None:
        graph = rig.graph(dense_blob())
        rig.arguments(graph, x)
        copies = ze.zeCommandListCreate(rig.context, rig.device, COPIES)
        execute = rig.table.pfnAppendGraphExecute
        wrong = r.ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
        rig.fails(wrong, lambda: execute(copies, graph))
        ze.zeCommandListClose(copies)
        rig.fails(wrong, lambda: rig.execute(copies))
        computes = rig.recorded(graph)
        submit = ze.zeCommandQueueExecuteCommandLists
        rig.fails(wrong, lambda: submit(copy_queue, [computes]))

    @pytest.mark.parametrize(("ordinal", "index"), [(2, 0), (1, 1), (0, 1), (-1, 0)])
    def test_each_of_two_groups_has_one_queue(self, rig, ordinal, index) -> None:
        desc = ze.ze_command_queue_desc_t(ordinal=ordinal, index=index)
        create = ze.zeCommandQueueCreate
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: create(rig.context, rig.device, desc))

    def test_the_thread_of_a_garbage_collected_queue_ends(self, rig) -> None:
        before = set(threading.enumerate())
        queue = ze.zeCommandQueueCreate(rig.context, rig.device)
        submitted(rig, queue, ze.zeCommandListAppendBarrier)
        ze.zeCommandQueueSynchronize(queue)
        made = set(threading.enumerate()) - before
        (thread,) = (one for one in made if one.name != "npu-idle")
        del queue
        thread.join(60)
        assert not thread.is_alive()
