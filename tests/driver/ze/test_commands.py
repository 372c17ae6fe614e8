"""Command lists, queues and fences: the public driver's behaviour, with its result codes."""

from __future__ import annotations

import os
import threading

import pytest

from driver_layer import ze
from driver_layer.errors import DeviceFault
from driver_layer.testing.blobs import dense_blob, is_expected
from driver_layer.ze import ze_result_t as r


class TestCommandLists:
    def test_copy_and_fill_run_in_order_when_the_list_is_executed(self, rig) -> None:
        source = ze.zeMemAllocHost(rig.context, 8)
        device = ze.zeMemAllocDevice(rig.context, 8, 0, rig.device)
        target = ze.zeMemAllocShared(rig.context, 8, 0, rig.device)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListAppendMemoryFill(commands, source, b"\1\2", 8)
        ze.zeCommandListAppendMemoryCopy(commands, device, source, 8)
        ze.zeCommandListAppendBarrier(commands)
        ze.zeCommandListAppendMemoryCopy(commands, target, device.address + 2, 6)
        ze.zeCommandListClose(commands)
        assert not target.data.any()
        rig.execute(commands)
        assert target.data.tolist() == [1, 2, 1, 2, 1, 2, 0, 0]

    def test_a_list_must_be_closed_to_execute_and_open_to_append(self, rig) -> None:
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        rig.fails(r.ZE_RESULT_ERROR_UNINITIALIZED, lambda: rig.execute(commands))
        ze.zeCommandListClose(commands)
        rig.execute(commands)
        append = ze.zeCommandListAppendBarrier
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: append(commands))
        ze.zeCommandListReset(commands)
        append(commands)
        ze.zeCommandListDestroy(commands)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: append(commands))

    def test_executing_no_list_is_an_invalid_size(self, rig) -> None:
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, rig.execute)

    @pytest.mark.parametrize(("pattern", "size"), [(b"", 8), (b"abc", 9)])
    def test_invalid_fill_patterns_are_rejected(self, rig, pattern, size) -> None:
        memory = ze.zeMemAllocHost(rig.context, 16)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        fill = ze.zeCommandListAppendMemoryFill
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: fill(commands, memory, pattern, size))

    def test_the_last_pattern_of_a_fill_may_be_cut(self, rig) -> None:
        memory = ze.zeMemAllocHost(rig.context, 8)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListAppendMemoryFill(commands, memory, b"ab", 7)
        ze.zeCommandListClose(commands)
        rig.execute(commands)
        assert bytes(memory.data) == b"abababa\0"


class TestFences:
    def test_a_fence_is_signaled_by_its_submission(self, rig) -> None:
        gate = threading.Event()
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        commands.append(lambda: gate.wait(30) and None)
        ze.zeCommandListClose(commands)
        fence = ze.zeFenceCreate(rig.queue)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_NOT_READY
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands], fence)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_NOT_READY
        wait = ze.zeFenceHostSynchronize
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: wait(fence, 1000))
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: ze.zeCommandQueueSynchronize(rig.queue, 1000))
        gate.set()
        wait(fence)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_SUCCESS
        ze.zeFenceReset(fence)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_NOT_READY

    def test_a_fence_may_begin_signaled(self, rig) -> None:
        fence = ze.zeFenceCreate(rig.queue, ze.ze_fence_flags_t.ZE_FENCE_FLAG_SIGNALED)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_SUCCESS

    def test_a_fence_of_another_queue_is_rejected(self, rig) -> None:
        other = ze.zeCommandQueueCreate(rig.context, rig.device)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListClose(commands)
        execute = ze.zeCommandQueueExecuteCommandLists
        rig.fails(
            r.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT,
            lambda: execute(rig.queue, [commands], ze.zeFenceCreate(other)),
        )


def submitted(rig, *steps) -> ze.ze_command_list_handle_t:
    """Submit a list of steps to the queue."""
    commands = ze.zeCommandListCreate(rig.context, rig.device)
    for step in steps:
        commands.append(step)
    ze.zeCommandListClose(commands)
    ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands])
    return commands


def fails_with(error: Exception):
    def step() -> None:
        raise error

    return step


class TestFailures:
    def test_the_queue_reports_once_that_a_submission_failed(self, rig) -> None:
        submitted(rig, fails_with(DeviceFault("the first one failed")))
        submitted(rig)
        sync = ze.zeCommandQueueSynchronize
        error = rig.fails(r.ZE_RESULT_ERROR_DEVICE_LOST, lambda: sync(rig.queue))
        assert "the first one failed" in str(error)
        sync(rig.queue)

    def test_an_error_of_the_host_has_a_result_code_as_well(self, rig) -> None:
        fence = ze.zeFenceCreate(rig.queue)
        commands = submitted(rig, fails_with(MemoryError("the host is full")))
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands], fence)
        for call in (
            lambda: ze.zeFenceHostSynchronize(fence),
            lambda: ze.zeCommandQueueSynchronize(rig.queue),
        ):
            error = rig.fails(r.ZE_RESULT_ERROR_UNKNOWN, call)
            assert isinstance(error.__cause__, MemoryError)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_ERROR_UNKNOWN

    def test_a_timeout_error_of_a_step_is_not_a_timeout_of_the_wait(self, rig) -> None:
        submitted(rig, fails_with(TimeoutError("a lock")))
        sync = ze.zeCommandQueueSynchronize
        rig.fails(r.ZE_RESULT_ERROR_UNKNOWN, lambda: sync(rig.queue))

    def test_a_wait_includes_submissions_of_all_threads(self, rig, monkeypatch) -> None:
        """The thread that returns last from submitting did not submit last."""
        submit = rig.queue.stream.submit
        is_in, may_return, gate = threading.Event(), threading.Event(), threading.Event()

        def late(job):
            work = submit(job)
            if threading.current_thread() is slow:
                is_in.set()
                may_return.wait(30)
            return work

        monkeypatch.setattr(rig.queue.stream, "submit", late)
        slow = threading.Thread(target=submitted, args=(rig,))
        slow.start()
        is_in.wait(30)
        submitted(rig, lambda: gate.wait(30))
        may_return.set()
        slow.join()
        sync = ze.zeCommandQueueSynchronize
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: sync(rig.queue, 1000))
        gate.set()
        sync(rig.queue)


class TestUse:
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    def test_a_forked_process_waits_only_for_its_own_submissions(self, rig) -> None:
        gate, done = threading.Event(), []
        submitted(rig, lambda: gate.wait(60))
        child = os.fork()
        if child == 0:
            submitted(rig, lambda: done.append(1))
            threading.Timer(30, lambda: os._exit(2)).start()
            ze.zeCommandQueueSynchronize(rig.queue)
            os._exit(0 if done else 1)
        assert os.waitpid(child, 0)[1] == 0
        gate.set()
        ze.zeCommandQueueSynchronize(rig.queue)

    def test_an_executing_list_cannot_be_reset(self, rig) -> None:
        gate = threading.Event()
        commands = submitted(rig, lambda: gate.wait(30))
        reset = ze.zeCommandListReset
        rig.fails(r.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, lambda: reset(commands))
        gate.set()
        ze.zeCommandQueueSynchronize(rig.queue)
        reset(commands)
        ze.zeCommandListDestroy(commands)

    def test_a_list_that_is_destroyed_while_it_executes_runs_to_its_end(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        pool = ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(1))
        go = ze.zeEventCreate(pool, ze.ze_event_desc_t(0))
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListAppendWaitOnEvents(commands, [go])
        rig.table.pfnAppendGraphExecute(commands, graph)
        ze.zeCommandListClose(commands)
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands])
        ze.zeCommandListDestroy(commands)
        rig.arguments(graph, -x)
        other = rig.recorded(graph)
        memory = rig.table.pfnQueryContextMemory(rig.context).allocated
        ze.zeEventHostSignal(go)
        ze.zeCommandQueueSynchronize(rig.queue)
        assert is_expected(rig.values(y), x)  # the other recording has an inference of its own
        ze.zeCommandListDestroy(other)
        del commands, other
        rig.recorded(graph)
        rig.recorded(graph)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == memory

    def test_lists_of_another_context_are_rejected(self, rig) -> None:
        other = ze.zeContextCreate(rig.device.driver)
        commands = ze.zeCommandListCreate(other, rig.device)
        ze.zeCommandListClose(commands)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.execute(commands))

    def test_another_device_than_the_contexts_is_rejected(self, rig) -> None:
        other = ze.simulated_driver("3720").device
        for create in (
            lambda: ze.zeCommandListCreate(rig.context, other),
            lambda: ze.zeCommandQueueCreate(rig.context, other),
            lambda: ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(1), [other]),
        ):
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, create)

    @pytest.mark.parametrize("timeout", [0, 1 << 63, ze.UINT64_MAX - 1, ze.UINT64_MAX])
    def test_any_64_bit_timeout_is_accepted(self, rig, timeout) -> None:
        fence = ze.zeFenceCreate(rig.queue)
        gate = threading.Event()
        commands = submitted(rig, lambda: gate.wait(0.05))
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands], fence)
        for call in (
            lambda: ze.zeFenceHostSynchronize(fence, timeout),
            lambda: ze.zeCommandQueueSynchronize(rig.queue, timeout),
        ):
            if timeout:
                call()
            else:
                rig.fails(r.ZE_RESULT_NOT_READY, call)

    def test_unknown_flags_of_a_fence_are_rejected(self, rig) -> None:
        create = ze.zeFenceCreate
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ENUMERATION, lambda: create(rig.queue, 2))
