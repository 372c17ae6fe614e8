"""Arguments with strides of their own; the behaviours of the public test_tensor_strides.cpp."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, is_expected
from driver_layer.ze import ze_result_t as r

ROOM = 64 * ROWS * COLS
MUTABLE = ze.ze_command_list_desc_t(pNext=ze.ze_mutable_command_list_exp_desc_t())
DENSE = {0: (1, DEPTH), 1: (1, COLS)}
BOTH = {0: (3, 40), 1: (2, 3 * COLS)}


@pytest.fixture
def graph(rig) -> ze.ze_graph_handle_t:
    return rig.graph(dense_blob(strided=True))


def view(memory: ze.Memory, index: int, strides: tuple[int, ...]) -> np.ndarray:
    """Return the argument's tensor in memory; strides are in elements, innermost first."""
    shape, steps = (ROWS, (DEPTH, COLS)[index]), (4 * strides[1], 4 * strides[0])
    return np.lib.stride_tricks.as_strided(memory.data.view(np.float32), shape, steps)


def chain(memory: ze.Memory | None, strides: tuple[int, ...] | None):
    link = None if strides is None else ze.ze_graph_argument_value_strides_t(strides)
    return link if memory is None else ze.ze_graph_argument_value_tensor_t(memory, link)


def bind(rig, graph, x: np.ndarray, strides: dict[int, tuple[int, ...]]) -> np.ndarray:
    """Set both arguments to new memory; return the view that y will have."""
    places = [ze.zeMemAllocHost(rig.context, ROOM) for _ in range(2)]
    for index, memory in enumerate(places):
        rig.table.pfnSetArgumentValue2(graph, index, chain(memory, strides.get(index)))
    view(places[0], 0, strides.get(0, DENSE[0]))[...] = x
    return view(places[1], 1, strides.get(1, DENSE[1]))


@pytest.mark.parametrize("strides", [{0: BOTH[0]}, {1: BOTH[1]}, BOTH, {0: (ROWS, 1)}])
def test_a_tensor_is_set_together_with_its_strides(rig, graph, x, strides) -> None:
    y = bind(rig, graph, x, strides)
    commands = rig.recorded(graph)
    rig.execute(commands)
    assert is_expected(y, x)
    for index in range(2):  # a location without strides is that of a dense tensor
        rig.table.pfnSetArgumentValue(graph, index, graph.arguments[index])
    places = [graph.arguments[index] for index in range(2)]
    ze.zeCommandListReset(commands)
    rig.table.pfnAppendGraphExecute(commands, graph)
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    assert is_expected(view(places[1], 1, DENSE[1]), view(places[0], 0, DENSE[0]))


def test_strides_may_be_set_alone_and_are_captured_by_the_recording(rig, graph, x) -> None:
    y = bind(rig, graph, x, {})
    place = graph.arguments[1]
    rig.table.pfnSetArgumentValue2(graph, 1, chain(None, BOTH[1]))
    commands = rig.recorded(graph)
    rig.table.pfnSetArgumentValue2(graph, 1, chain(place, None))
    rig.execute(commands)
    assert is_expected(view(place, 1, BOTH[1]), x)
    assert not is_expected(y, x)


@pytest.mark.parametrize("extra", [(), (7,), (7, 9, 11)])
def test_strides_of_dimensions_that_the_tensor_does_not_have_are_ignored(
    rig, graph, x, extra
) -> None:
    y = bind(rig, graph, x, {1: (*BOTH[1], *extra)})
    rig.execute(rig.recorded(graph))
    assert is_expected(y, x)


@pytest.mark.parametrize(
    ("strides", "message"),
    [
        ((0, DEPTH), "elements overlap"),
        ((1, 0), "elements overlap"),
        ((1, DEPTH - 1), "elements overlap"),
        ((ROWS - 1, 1), "elements overlap"),
        ((2, DEPTH), "elements overlap"),
        ((1, 2**30), "has over"),
        ((1,), "1 numbers for 2 dimensions"),
        ((), "0 numbers for 2 dimensions"),
        ((1, DEPTH, 0, 0, 0, 0), "6 numbers for 2 dimensions"),
    ],
)
def test_impossible_strides_are_rejected_and_change_nothing(
    rig, graph, x, strides, message
) -> None:
    y = bind(rig, graph, x, BOTH)
    call = rig.table.pfnSetArgumentValue2
    other = ze.zeMemAllocHost(rig.context, ROOM)
    given = chain(other, strides)
    error = rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: call(graph, 0, given))
    assert message in str(error)
    rig.execute(rig.recorded(graph))
    assert is_expected(y, x)


def test_the_memory_must_hold_the_last_element(rig, graph, x) -> None:
    bind(rig, graph, x, {})
    size = 4 * ((ROWS - 1) * 64 + (DEPTH - 1) * 2 + 1)
    for nbytes, enough in ((size, True), (size - 4, False)):
        memory = ze.zeMemAllocHost(rig.context, nbytes)
        rig.table.pfnSetArgumentValue2(graph, 0, chain(memory, (2, 64)))
        if enough:
            rig.recorded(graph)
        else:
            code = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
            rig.fails(code, lambda: rig.recorded(graph))


def test_properties_name_the_arguments_that_take_strides(rig, graph) -> None:
    for made, expected in ((graph, True), (rig.graph(dense_blob()), False)):
        for index in range(2):
            for name in ("", "2", "3"):
                ask = getattr(rig.table, f"pfnGetArgumentProperties{name}")
                assert ask(made, index).pNext.supportsDynamicStrides is expected


class TestMutableLists:
    def update(self, commands, number, *changes) -> None:
        """Change arguments (index, memory, strides) of a recorded execution."""
        link = None
        for index, memory, strides in reversed(changes):
            if strides is not None:
                link = ze.ze_graph_argument_value_strides_t(strides, link)
            link = ze.ze_mutable_graph_argument_exp_desc_t(number, index, memory, link)
        desc = ze.ze_mutable_commands_exp_desc_t(link)
        ze.zeCommandListUpdateMutableCommandsExp(commands, desc)
        ze.zeCommandListClose(commands)

    def recorded(self, rig, graph):
        commands = ze.zeCommandListCreate(rig.context, rig.device, MUTABLE)
        desc = ze.ze_mutable_command_id_exp_desc_t()
        number = ze.zeCommandListGetNextCommandIdExp(commands, desc)
        rig.table.pfnAppendGraphExecute(commands, graph)
        ze.zeCommandListClose(commands)
        rig.execute(commands)
        return commands, number

    def test_strides_are_added_changed_with_the_tensor_and_removed(self, rig, graph, x) -> None:
        y = bind(rig, graph, x, {})
        commands, number = self.recorded(rig, graph)
        assert is_expected(y, x)
        at_x, at_y = graph.arguments[0], graph.arguments[1]
        view(at_x, 0, BOTH[0])[...] = -x
        self.update(commands, number, (0, at_x, BOTH[0]), (1, None, BOTH[1]))
        rig.execute(commands)
        assert is_expected(view(at_y, 1, BOTH[1]), -x)
        other = ze.zeMemAllocHost(rig.context, ROOM)
        view(other, 0, (1, 50))[...] = 2 * x
        self.update(commands, number, (0, other, (1, 50)))
        rig.execute(commands)
        assert is_expected(view(at_y, 1, BOTH[1]), 2 * x)
        view(other, 0, DENSE[0])[...] = 3 * x
        self.update(commands, number, (0, other, None), (1, at_y, None))
        rig.execute(commands)
        assert is_expected(view(at_y, 1, DENSE[1]), 3 * x)

    def test_an_invalid_change_changes_nothing(self, rig, graph, x) -> None:
        y = bind(rig, graph, x, BOTH)
        commands, number = self.recorded(rig, graph)
        small = ze.zeMemAllocHost(rig.context, 4 * ROWS * DEPTH)
        code = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
        for change in ((0, None, (0, DEPTH)), (0, small, (1, 2 * DEPTH)), (2, small, (1, 1))):
            rig.fails(code, lambda change=change: self.update(commands, number, change))
        y[...] = 0
        rig.execute(commands)
        assert is_expected(y, x)
