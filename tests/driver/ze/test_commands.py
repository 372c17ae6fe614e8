"""Command lists, queues and fences: the public driver's behaviour, with its result codes."""

from __future__ import annotations

import threading

import pytest

from driver_layer import ze
from driver_layer.ze import ze_result_t as r


class TestCommandLists:
    def test_copy_and_fill_happen_in_order_when_the_list_is_executed(self, rig) -> None:
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

    def test_a_list_must_be_closed_to_run_and_open_to_grow(self, rig) -> None:
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

    def test_no_list_at_all_is_an_invalid_size(self, rig) -> None:
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, rig.execute)

    @pytest.mark.parametrize(("pattern", "size"), [(b"", 8), (b"abc", 9), (b"ab", 7)])
    def test_fill_patterns_are_checked(self, rig, pattern, size) -> None:
        memory = ze.zeMemAllocHost(rig.context, 16)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        fill = ze.zeCommandListAppendMemoryFill
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: fill(commands, memory, pattern, size))


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

    def test_a_fence_belongs_to_its_queue(self, rig) -> None:
        other = ze.zeCommandQueueCreate(rig.context, rig.device)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListClose(commands)
        execute = ze.zeCommandQueueExecuteCommandLists
        rig.fails(
            r.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT,
            lambda: execute(rig.queue, [commands], ze.zeFenceCreate(other)),
        )
