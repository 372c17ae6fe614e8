"""Tensors with strides through the C library, as the public test_tensor_strides.cpp has them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.driver.c_abi.library import INVALID_ARGUMENT, SUCCESS, Rig

from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, is_expected

X = np.linspace(-1, 1, ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
GRAPH_ARGUMENTS = 1 << 7
STRIDES = ([2, 24, 0, 0, 0], [3, 60, 7, 7, 7])


@pytest.fixture
def graph(rig) -> int:
    return rig.graph(dense_blob(strided=True))


def argument(rig: Rig, index: int, strides: list[int]) -> tuple[int, np.ndarray]:
    """Return new memory for an argument, and the view of the tensor in it."""
    place, shape = rig.host(), (ROWS, (DEPTH, COLS)[index])
    steps = (4 * strides[1], 4 * strides[0])
    return place, np.lib.stride_tricks.as_strided(rig.view(place, 1024), shape, steps)


def strides_of(rig: Rig, index: int, **fields: int) -> int:
    return rig.struct("ze_graph_argument_value_strides_t", userStrides=STRIDES[index], **fields)


def append(rig: Rig, graph: int) -> tuple[int, int]:
    """Return a mutable list with one execution, and the execution's number."""
    commands = rig.list(mutable=True)
    flags = rig.struct("ze_mutable_command_id_exp_desc_t", flags=GRAPH_ARGUMENTS)
    number = rig.npu.make("zeCommandListGetNextCommandIdExp", commands, flags)
    assert rig.npu.pfnAppendGraphExecute(commands, graph, None, None, 0, None) == SUCCESS
    return commands, number


def test_a_tensor_is_set_together_with_its_strides(rig, graph) -> None:
    places, views = zip(*(argument(rig, n, STRIDES[n]) for n in range(2)), strict=True)
    views[0][...] = X
    for index, place in enumerate(places):
        value = rig.struct(
            "ze_graph_argument_value_tensor_t", pTensor=place, pNext=strides_of(rig, index)
        )
        assert rig.npu.pfnSetArgumentValue2(graph, index, value) == SUCCESS
    commands, _ = append(rig, graph)
    rig.run(commands)
    assert is_expected(views[1], X)


def test_a_mutable_list_takes_strides_after_the_tensor(rig, graph) -> None:
    for index in range(2):
        assert rig.npu.pfnSetArgumentValue(graph, index, rig.host()) == SUCCESS
    commands, number = append(rig, graph)
    rig.run(commands)
    places, views = zip(*(argument(rig, n, STRIDES[n]) for n in range(2)), strict=True)
    views[0][...] = X
    chain = 0
    for index, place in enumerate(places):
        chain = rig.struct(
            "ze_mutable_graph_argument_exp_desc_t",
            commandId=number,
            argIndex=index,
            pArgValue=place,
            pNext=strides_of(rig, index, pNext=chain),
        )
    desc = rig.struct("ze_mutable_commands_exp_desc_t", pNext=chain)
    assert rig.npu.zeCommandListUpdateMutableCommandsExp(commands, desc) == SUCCESS
    rig.run(commands)
    assert is_expected(views[1], X)


def test_strides_of_an_argument_without_them_are_rejected(rig) -> None:
    value = rig.struct(
        "ze_graph_argument_value_tensor_t", pTensor=rig.host(), pNext=strides_of(rig, 0)
    )
    assert rig.npu.pfnSetArgumentValue2(rig.graph(), 0, value) == INVALID_ARGUMENT


@pytest.mark.parametrize("version", ["", "_2", "_3"])
def test_the_property_of_strides_follows_the_properties(rig, graph, version) -> None:
    get = getattr(rig.npu, f"pfnGetArgumentProperties{version.strip('_')}")
    for made, expected in ((graph, True), (rig.graph(), False)):
        asked = rig.struct("ze_graph_argument_property_strides_t")
        place = rig.struct(f"ze_graph_argument_properties{version}_t", pNext=asked)
        assert get(made, 0, place) == SUCCESS
        found = rig.read("ze_graph_argument_property_strides_t", asked)
        assert bool(found.supportsDynamicStrides) is expected
