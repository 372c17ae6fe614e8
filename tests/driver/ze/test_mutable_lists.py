"""Mutable command lists: one recording of a graph that runs with different arguments."""

from __future__ import annotations

import numpy as np

from driver_layer import ze
from driver_layer.testing.blobs import COLS, ROWS, dense_blob, is_expected
from driver_layer.ze import ze_result_t as r

MUTABLE = ze.ze_command_list_desc_t(pNext=ze.ze_mutable_command_list_exp_desc_t())
ARGUMENTS = ze.ze_mutable_command_id_exp_desc_t()


def mutable(rig, graph):
    commands = ze.zeCommandListCreate(rig.context, rig.device, MUTABLE)
    number = ze.zeCommandListGetNextCommandIdExp(commands, ARGUMENTS)
    rig.table.pfnAppendGraphExecute(commands, graph)
    ze.zeCommandListClose(commands)
    return commands, number


def update(commands, *changes) -> None:
    chain = None
    for change in changes:
        chain = ze.ze_mutable_graph_argument_exp_desc_t(*change, chain)
    desc = ze.ze_mutable_commands_exp_desc_t(chain)
    ze.zeCommandListUpdateMutableCommandsExp(commands, desc)


def test_inputs_and_outputs_are_replaced_without_a_new_recording(rig, x) -> None:
    graph = rig.graph(dense_blob())
    first = rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    second = rig.arguments(graph, -x)
    other_x = graph.arguments[0]
    rig.execute(commands)
    update(commands, (number, 0, other_x), (number, 1, second))
    rig.fails(r.ZE_RESULT_ERROR_UNINITIALIZED, lambda: rig.execute(commands))
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    assert is_expected(rig.values(first), x)
    assert is_expected(rig.values(second), -x)


def test_the_latest_update_applies_and_keeps_other_arguments(rig, x) -> None:
    graph = rig.graph(dense_blob())
    y = rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    rig.arguments(graph, 2 * x)
    update(commands, (number, 0, graph.arguments[0]))
    rig.arguments(graph, 3 * x)
    update(commands, (number, 0, graph.arguments[0]))
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    assert is_expected(rig.values(y), 3 * x)


def test_each_command_has_its_own_number(rig, x) -> None:
    graphs = [rig.graph(dense_blob()) for _ in range(2)]
    answers = [rig.arguments(graph, x) for graph in graphs]
    commands = ze.zeCommandListCreate(rig.context, rig.device, MUTABLE)
    numbers = []
    for graph in graphs:
        ze.zeCommandListAppendBarrier(commands)
        numbers.append(ze.zeCommandListGetNextCommandIdExp(commands, ARGUMENTS))
        rig.table.pfnAppendGraphExecute(commands, graph)
    rig.arguments(graphs[1], -x)
    update(commands, (numbers[1], 0, graphs[1].arguments[0]))
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    assert is_expected(rig.values(answers[0]), x)
    assert is_expected(rig.values(answers[1]), -x)


def test_earlier_arguments_are_still_prepared_when_they_return(rig, x, monkeypatch) -> None:
    graph = rig.graph(dense_blob())
    y = rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    one = graph.arguments[0]
    rig.arguments(graph, -x)
    other = graph.arguments[0]
    for argument in (other, one):
        update(commands, (number, 0, argument))
        ze.zeCommandListClose(commands)
    prepared = count_preparations(rig, monkeypatch)
    for argument, expected in ((other, -x), (one, x), (other, -x)):
        update(commands, (number, 0, argument))
        ze.zeCommandListClose(commands)
        rig.execute(commands)
        assert is_expected(rig.values(y), expected)
    assert prepared == []


def test_other_arguments_and_recordings_rebase_the_prepared_program(rig, x, monkeypatch) -> None:
    graph = rig.graph(dense_blob())
    prepared = count_preparations(rig, monkeypatch)
    first = rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    assert len(prepared) == 1
    second = rig.arguments(graph, -x)
    update(commands, (number, 0, graph.arguments[0]), (number, 1, second))
    ze.zeCommandListClose(commands)
    third = rig.arguments(graph, 3 * x)
    rig.execute(commands, rig.recorded(graph))
    assert is_expected(rig.values(second), -x)
    assert is_expected(rig.values(third), 3 * x)
    assert not first.data.any()
    assert len(prepared) == 1


def test_arguments_that_share_memory_are_prepared_separately(rig, x, monkeypatch) -> None:
    """The output overwrites the input, so the order of reads and writes must be found again."""
    graph = rig.graph(dense_blob())
    rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    prepared = count_preparations(rig, monkeypatch)
    both = ze.zeMemAllocShared(rig.context, 1 << 16, 0, rig.device)
    both.data[: x.nbytes] = x.view(np.uint8).reshape(-1)
    update(commands, (number, 0, both), (number, 1, both))
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    answer = both.data[: ROWS * COLS * 4].view(np.float32).reshape(ROWS, COLS)
    assert is_expected(answer, x)
    assert len(prepared) == 1


def count_preparations(rig, monkeypatch) -> list[int]:
    """Return a list that grows with each program that is prepared, not rebased."""
    found: list[int] = []
    programs = type(rig.device.npu._core)
    prepare = programs._prepare

    def counted(self, bus, address, footprint):
        found.append(len(found))
        return prepare(self, bus, address, footprint)

    monkeypatch.setattr(programs, "_prepare", counted)
    return found


def test_an_invalid_update_is_rejected_and_changes_nothing(rig, x) -> None:
    graph = rig.graph(dense_blob())
    y = rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    small = ze.zeMemAllocHost(rig.context, 8)
    other = ze.zeMemAllocHost(rig.context, y.size)
    invalid = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
    for bad in ((number + 1, 0, other), (number, 9, other), (number, 0, small)):
        rig.fails(invalid, lambda bad=bad: update(commands, bad, (number, 1, other)))
    rig.fails(
        r.ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        lambda: update(commands, (number, 0, None)),
    )
    rig.fails(invalid, lambda: update(commands))
    fixed = rig.recorded(graph)
    rig.fails(invalid, lambda: update(fixed, (0, 0, other)))
    rig.execute(commands)
    assert is_expected(rig.values(y), x)
    assert not other.data.any()


def test_only_open_mutable_lists_have_command_numbers_for_graph_arguments(rig) -> None:
    ask = ze.zeCommandListGetNextCommandIdExp
    invalid = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
    plain = ze.zeCommandListCreate(rig.context, rig.device)
    rig.fails(invalid, lambda: ask(plain, ARGUMENTS))
    commands = ze.zeCommandListCreate(rig.context, rig.device, MUTABLE)
    rig.fails(invalid, lambda: ask(commands, ze.ze_mutable_command_id_exp_desc_t(1)))
    ze.zeCommandListClose(commands)
    rig.fails(invalid, lambda: ask(commands, ARGUMENTS))


def test_a_list_cannot_be_changed_while_it_executes(rig, x) -> None:
    pool = ze.zeEventPoolCreate(rig.context, ze.ze_event_pool_desc_t(1))
    go = ze.zeEventCreate(pool, ze.ze_event_desc_t(0))
    graph = rig.graph(dense_blob())
    y = rig.arguments(graph, x)
    commands = ze.zeCommandListCreate(rig.context, rig.device, MUTABLE)
    ze.zeCommandListAppendWaitOnEvents(commands, [go])
    number = ze.zeCommandListGetNextCommandIdExp(commands, ARGUMENTS)
    rig.table.pfnAppendGraphExecute(commands, graph)
    ze.zeCommandListClose(commands)
    ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands])
    rig.fails(
        r.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE,
        lambda: update(commands, (number, 1, y)),
    )
    ze.zeEventHostSignal(go)
    ze.zeCommandQueueSynchronize(rig.queue)
    assert is_expected(rig.values(y), x)


def test_dense_strides_may_follow_an_argument(rig, x) -> None:
    graph = rig.graph(dense_blob())
    y = rig.arguments(graph, x)
    commands, number = mutable(rig, graph)
    rig.arguments(graph, -x)
    dense = ze.ze_graph_argument_value_strides_t((1, x.shape[1]))
    moved = ze.ze_mutable_graph_argument_exp_desc_t(number, 0, graph.arguments[0], dense)
    only_strides = ze.ze_mutable_graph_argument_exp_desc_t(
        number, 1, None, ze.ze_graph_argument_value_strides_t((1, COLS), moved)
    )
    call = ze.zeCommandListUpdateMutableCommandsExp
    call(commands, ze.ze_mutable_commands_exp_desc_t(only_strides))
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    assert is_expected(rig.values(y), -x)
    other = ze.ze_graph_argument_value_strides_t((1, x.shape[1] + 1))
    wrong = ze.ze_mutable_graph_argument_exp_desc_t(number, 0, graph.arguments[0], other)
    code = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
    rig.fails(code, lambda: call(commands, ze.ze_mutable_commands_exp_desc_t(wrong)))
