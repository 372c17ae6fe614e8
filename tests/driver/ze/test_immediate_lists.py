"""Immediate lists, time stamps and copies of regions, with the public driver's result codes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.testing.blobs import dense_blob, is_expected
from driver_layer.ze import ze_result_t as r

SYNCHRONOUS = ze.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS


def immediate(rig, **fields) -> ze.ze_command_list_handle_t:
    desc = ze.ze_command_queue_desc_t(**fields)
    return ze.zeCommandListCreateImmediate(rig.context, rig.device, desc)


class TestImmediateLists:
    def test_a_command_runs_when_it_is_appended(self, rig) -> None:
        memory = ze.zeMemAllocHost(rig.context, 8)
        commands = immediate(rig)
        assert ze.zeCommandListIsImmediate(commands)
        assert ze.zeCommandListImmediateGetIndex(commands) == 0
        ze.zeCommandListAppendMemoryFill(commands, memory, b"\5", 8)
        ze.zeCommandListAppendMemoryFill(commands, memory.address + 4, b"\6", 4)
        ze.zeCommandListHostSynchronize(commands)
        assert memory.data.tolist() == [5, 5, 5, 5, 6, 6, 6, 6]

    def test_a_synchronous_list_returns_after_the_command(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        rig.table.pfnAppendGraphExecute(immediate(rig, mode=SYNCHRONOUS), graph)
        assert is_expected(rig.values(y), x)

    def test_inferences_release_their_memory_when_they_have_ended(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        rig.arguments(graph, x)
        commands = immediate(rig, mode=SYNCHRONOUS)
        rig.table.pfnAppendGraphExecute(commands, graph)
        memory = rig.table.pfnQueryContextMemory(rig.context).allocated
        for _ in range(3):
            rig.table.pfnAppendGraphExecute(commands, graph)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == memory

    def test_a_list_waits_for_events_and_signals_them(self, rig) -> None:
        pool = ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(2))
        begin, end = (ze.zeEventCreate(pool, ze.ze_event_desc_t(n)) for n in range(2))
        commands = immediate(rig)
        ze.zeCommandListAppendBarrier(commands, end, [begin])
        synchronize = ze.zeCommandListHostSynchronize
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: synchronize(commands, 1000))
        ze.zeEventHostSignal(begin)
        ze.zeEventHostSynchronize(end)
        synchronize(commands)

    def test_a_list_that_is_destroyed_while_it_executes_runs_to_its_end(self, rig) -> None:
        pool = ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(2))
        begin, end = (ze.zeEventCreate(pool, ze.ze_event_desc_t(n)) for n in range(2))
        commands = immediate(rig)
        ze.zeCommandListAppendBarrier(commands, end, [begin])
        ze.zeCommandListDestroy(commands)
        ze.zeEventHostSignal(begin)
        ze.zeEventHostSynchronize(end)
        synchronize = ze.zeCommandListHostSynchronize
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: synchronize(commands))

    def test_a_failed_command_is_reported_once(self, rig) -> None:
        def fail() -> None:
            raise RuntimeError("no")

        commands = immediate(rig)
        commands.append(fail)
        synchronize = ze.zeCommandListHostSynchronize
        rig.fails(r.ZE_RESULT_ERROR_UNKNOWN, lambda: synchronize(commands))
        synchronize(commands)

    def test_it_is_never_closed_and_never_executed(self, rig) -> None:
        commands = immediate(rig)
        code = r.ZE_RESULT_ERROR_UNINITIALIZED
        rig.fails(code, lambda: ze.zeCommandListClose(commands))
        ze.zeCommandListReset(commands)
        rig.fails(code, lambda: rig.execute(commands))
        usual = ze.zeCommandListCreate(rig.context, rig.device)
        assert not ze.zeCommandListIsImmediate(usual)
        rig.fails(code, lambda: ze.zeCommandListHostSynchronize(usual))
        index = ze.zeCommandListImmediateGetIndex
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: index(usual))

    def test_appending_does_not_wait_for_earlier_commands(self, rig) -> None:
        gate = threading.Event()
        commands = immediate(rig)
        commands.append(lambda: gate.wait(30))
        commands.append(lambda: None)
        gate.set()
        ze.zeCommandListHostSynchronize(commands)


class TestTimeStamps:
    def test_time_stamps_are_written_in_the_order_of_the_commands(self, rig) -> None:
        memory = ze.zeMemAllocHost(rig.context, 16)
        commands = immediate(rig)
        _, before = ze.zeDeviceGetGlobalTimestamps(rig.device)
        for offset in (0, 8):
            at = memory.address + offset
            ze.zeCommandListAppendWriteGlobalTimestamp(commands, at)
        ze.zeCommandListHostSynchronize(commands)
        first, second = memory.data.view("<u8")
        _, after = ze.zeDeviceGetGlobalTimestamps(rig.device)
        assert before <= first <= second <= after
        write = ze.zeCommandListAppendWriteGlobalTimestamp
        invalid = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
        rig.fails(invalid, lambda: write(commands, memory.address + 9))

    def test_events_have_no_time_stamps(self, rig) -> None:
        pool = ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(1))
        event = ze.zeEventCreate(pool, ze.ze_event_desc_t(0))
        query = ze.zeEventQueryKernelTimestamp
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: query(event))


class TestCopies:
    def test_a_region_is_copied_row_by_row(self, rig) -> None:
        source = ze.zeMemAllocHost(rig.context, 40)
        target = ze.zeMemAllocHost(rig.context, 24)
        source.data[:] = np.arange(40)
        here, there = ze.ze_copy_region_t(1, 2, 0, 3, 2, 1), ze.ze_copy_region_t(2, 1, 0, 3, 2, 1)
        commands = immediate(rig, mode=SYNCHRONOUS)
        region = ze.zeCommandListAppendMemoryCopyRegion
        region(commands, target, there, 8, 0, source, here, 10, 0)
        expected = np.zeros((3, 8), np.uint8)
        expected[1:3, 2:5] = np.arange(40).reshape(4, 10)[2:4, 1:4]
        assert np.array_equal(target.data.reshape(3, 8), expected)

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"width": 4}, r.ZE_RESULT_ERROR_INVALID_SIZE),
            ({"width": 0}, r.ZE_RESULT_ERROR_INVALID_SIZE),
            ({"width": 9}, r.ZE_RESULT_ERROR_INVALID_SIZE),
            ({"depth": 2}, r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE),
            ({"originZ": 1}, r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE),
            ({"originY": 3}, r.ZE_RESULT_ERROR_INVALID_ARGUMENT),
            ({"originX": -1}, r.ZE_RESULT_ERROR_INVALID_ARGUMENT),
        ],
    )
    def test_invalid_regions_are_rejected(self, rig, change, code) -> None:
        memory = ze.zeMemAllocHost(rig.context, 24)
        fields = {"originX": 0, "originY": 0, "originZ": 0, "width": 3, "height": 2, "depth": 1}
        wrong = ze.ze_copy_region_t(**fields | change)
        same = (
            [wrong] * 2
            if change.keys() & {"depth"} or change.get("width") in (0, 9)
            else [
                wrong,
                ze.ze_copy_region_t(**fields),
            ]
        )
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        region = ze.zeCommandListAppendMemoryCopyRegion
        rig.fails(code, lambda: region(commands, memory, same[0], 8, 0, memory, same[1], 8, 0))

    def test_memory_is_copied_from_another_context(self, rig) -> None:
        other = ze.zeContextCreate(rig.device.driver)
        source, target = ze.zeMemAllocHost(other, 4), ze.zeMemAllocHost(rig.context, 4)
        source.data[:] = 9
        commands = immediate(rig, mode=SYNCHRONOUS)
        ze.zeCommandListAppendMemoryCopyFromContext(commands, target, other, source, 4)
        assert target.data.tolist() == [9] * 4

    def test_a_barrier_for_ranges_checks_them(self, rig) -> None:
        memory = ze.zeMemAllocHost(rig.context, 16)
        commands = immediate(rig, mode=SYNCHRONOUS)
        barrier = ze.zeCommandListAppendMemoryRangesBarrier
        barrier(commands, [8, 8], [memory, memory.address + 8])
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: barrier(commands, [17], [memory]))
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: barrier(commands, [], [memory]))
