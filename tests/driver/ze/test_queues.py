"""Priorities, workload types and options of queues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.driver.npu.test_turns import until_waiting

from driver_layer import ze
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, expected
from driver_layer.ze import ze_result_t as r

NORMAL, LOW, HIGH = ze.ze_command_queue_priority_t
DEFAULT, BACKGROUND = ze.ze_command_queue_workload_type_t
TURBO, DEVICE_SYNC = ze.ze_npu_command_queue_option_t
SYNCHRONOUS = ze.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
COPIES = 1
Asked = tuple[ze.ze_command_queue_priority_t, ze.ze_command_queue_workload_type_t]


@pytest.fixture
def table(rig) -> ze.ze_command_queue_npu_dditable_ext_t:
    return ze.zeDriverGetExtensionFunctionAddress(rig.device.driver, ze.QUEUE_EXTENSION)


def create(rig, **asked: object) -> ze.ze_command_queue_handle_t:
    desc = ze.ze_command_queue_desc_t(**asked)  # type: ignore[arg-type]
    return ze.zeCommandQueueCreate(rig.context, rig.device, desc)


def runs_second_first(rig, table, asked: Sequence[Asked]) -> bool:
    """Submit an inference to each of two waiting queues; return whether the second ran first.

    The first writes the second's input, so the second's output shows which one ran first.
    """
    first, second = (rig.graph(dense_blob()) for _ in range(2))
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float32)
    between = rig.arguments(first, x)
    result = ze.zeMemAllocShared(rig.context, ROWS * COLS * 4, 0, rig.device)
    rig.table.pfnSetArgumentValue(second, 0, between)
    rig.table.pfnSetArgumentValue(second, 1, result)
    queues: list[ze.ze_command_queue_handle_t] = []
    lists = [rig.recorded(graph) for graph in (first, second)]
    with rig.device.npu.engines:
        for commands, (priority, workload) in zip(lists, asked, strict=True):
            queues.append(create(rig, priority=priority))
            table.pfnSetWorkloadType(queues[-1], workload)
            ze.zeCommandQueueExecuteCommandLists(queues[-1], [commands])
            until_waiting(rig.device.npu.engines, len(queues))
    for queue in queues:
        ze.zeCommandQueueSynchronize(queue)
    read = expected(x).reshape(-1)[: ROWS * DEPTH].reshape(ROWS, DEPTH)
    found = rig.values(result)
    after = bool(np.allclose(found, expected(read), rtol=1e-5, atol=1e-6))
    assert after != (not found.any())
    return not after


@pytest.mark.parametrize(
    ("first", "second", "overtakes"),
    [
        ((NORMAL, DEFAULT), (NORMAL, DEFAULT), False),
        ((NORMAL, DEFAULT), (HIGH, DEFAULT), True),
        ((LOW, DEFAULT), (NORMAL, DEFAULT), True),
        ((NORMAL, DEFAULT), (LOW, DEFAULT), False),
        ((NORMAL, BACKGROUND), (NORMAL, DEFAULT), True),
        ((HIGH, BACKGROUND), (LOW, DEFAULT), True),
        ((LOW, DEFAULT), (HIGH, BACKGROUND), False),
        ((LOW, BACKGROUND), (HIGH, BACKGROUND), True),
    ],
)
def test_the_more_urgent_of_two_waiting_inferences_runs_first(
    rig, table, first, second, overtakes
) -> None:
    assert runs_second_first(rig, table, [first, second]) is overtakes


def test_submissions_of_a_queue_run_in_order(rig, table) -> None:
    """The background submission comes first, and later submissions wait for it."""
    x = np.ones((ROWS, DEPTH), np.float32)
    first, second = (rig.graph(dense_blob()) for _ in range(2))
    between = rig.arguments(first, x)
    result = ze.zeMemAllocShared(rig.context, ROWS * COLS * 4, 0, rig.device)
    rig.table.pfnSetArgumentValue(second, 0, between)
    rig.table.pfnSetArgumentValue(second, 1, result)
    lists = [rig.recorded(graph) for graph in (first, second)]
    with rig.device.npu.engines:
        for commands, workload in zip(lists, (BACKGROUND, DEFAULT), strict=True):
            table.pfnSetWorkloadType(rig.queue, workload)
            ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands])
        until_waiting(rig.device.npu.engines, 1)
    ze.zeCommandQueueSynchronize(rig.queue)
    read = expected(x).reshape(-1)[: ROWS * DEPTH].reshape(ROWS, DEPTH)
    assert np.allclose(rig.values(result), expected(read))


def test_turbo_is_accepted_with_a_line_in_the_log(rig, caplog) -> None:
    caplog.set_level("INFO", "driver_layer")
    for asked in (
        ze.ze_command_queue_desc_npu_ext_t(turbo=True),
        ze.ze_command_queue_desc_npu_ext_2_t(TURBO),
        ze.ze_command_queue_desc_npu_ext_2_t(TURBO | DEVICE_SYNC),
    ):
        caplog.clear()
        assert create(rig, pNext=asked).alive
        assert "one clock" in caplog.text
    caplog.clear()
    assert create(rig, pNext=ze.ze_command_queue_desc_npu_ext_t()).alive
    assert create(rig, pNext=ze.ze_command_queue_desc_npu_ext_2_t(TURBO), mode=SYNCHRONOUS).alive
    assert "one clock" in caplog.text


def test_device_sync_is_accepted_except_for_synchronous_queues(rig) -> None:
    in_order = ze.ze_command_queue_desc_npu_ext_2_t(DEVICE_SYNC)
    assert create(rig, pNext=in_order).alive
    wrong = r.ZE_RESULT_ERROR_INVALID_ENUMERATION
    rig.fails(wrong, lambda: create(rig, pNext=in_order, mode=SYNCHRONOUS))


def test_copy_queues_have_no_priority_and_no_workload_type(rig, table) -> None:
    unsupported = r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    rig.fails(unsupported, lambda: create(rig, ordinal=COPIES, priority=HIGH))
    copies = create(rig, ordinal=COPIES)
    rig.fails(unsupported, lambda: table.pfnSetWorkloadType(copies, BACKGROUND))


def test_unknown_priorities_options_and_types_are_rejected(rig, table) -> None:
    wrong = r.ZE_RESULT_ERROR_INVALID_ENUMERATION
    rig.fails(wrong, lambda: create(rig, priority=3))
    rig.fails(wrong, lambda: create(rig, pNext=ze.ze_command_queue_desc_npu_ext_2_t(4)))
    rig.fails(wrong, lambda: table.pfnSetWorkloadType(rig.queue, 2))
