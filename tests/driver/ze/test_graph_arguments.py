"""Properties, metadata, locations and strides of a graph's arguments."""

from __future__ import annotations

import pytest

from driver_layer import ze
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, is_expected
from driver_layer.ze import ze_result_t as r

F32 = 1
NATIVE = ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE
PERSISTENT = ze.ze_graph_flags_t.ZE_GRAPH_FLAG_INPUT_GRAPH_PERSISTENT


class TestProperties:
    def test_each_version_has_the_fields_of_the_earlier_one(self, rig) -> None:
        graph = rig.graph(dense_blob())
        for index, name in enumerate(("x", "y")):
            full = rig.table.pfnGetArgumentProperties3(graph, index)
            for part in (
                rig.table.pfnGetArgumentProperties(graph, index),
                rig.table.pfnGetArgumentProperties2(graph, index),
            ):
                for field in type(part).__dataclass_fields__:
                    assert getattr(part, field) == getattr(full, field)
            assert (full.name, full.type) == (name, index)
            assert (full.networkPrecision, full.devicePrecision) == (F32, F32)
            assert full.networkLayout is full.deviceLayout
            assert full.deviceLayout.name == "ZE_GRAPH_ARGUMENT_LAYOUT_NC"
            assert not full.pNext.supportsDynamicStrides

    def test_properties_of_a_graph_agree_in_all_versions(self, rig) -> None:
        graph = rig.graph(dense_blob())
        table = rig.table
        assert table.pfnGetProperties(graph).numGraphArgs == 2
        assert table.pfnGetProperties2(graph).initStageRequired == 2
        flags = ze.ze_graph_properties_flag_t
        assert table.pfnGetProperties3(graph).flags == (
            flags.ZE_GRAPH_PROPERTIES_FLAG_PRE_COMPILED
            | flags.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
        )
        table.pfnEvict(graph)

    @pytest.mark.parametrize("offset", [0, 64])
    def test_persistent_input_may_begin_and_end_anywhere(self, rig, offset) -> None:
        blob = dense_blob()
        memory = ze.zeMemAllocHost(rig.context, offset + len(blob))
        memory.data[offset:] = memoryview(blob)
        content = memoryview(memory.data)[offset:]
        desc = ze.ze_graph_desc_2_t(NATIVE, content, flags=PERSISTENT)
        graph = rig.table.pfnCreate2(rig.context, rig.device, desc)
        flags = rig.table.pfnGetProperties3(graph).flags
        assert flags == ze.ze_graph_properties_flag_t.ZE_GRAPH_PROPERTIES_FLAG_PRE_COMPILED


class TestStrides:
    def test_dense_strides_are_accepted(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, -x)
        at_x = ze.zeMemAllocHost(rig.context, x.nbytes)
        at_x.data[:] = x.view("u1").reshape(-1)
        strides = ze.ze_graph_argument_value_strides_t((1, DEPTH, 0, 0, 0))
        tensor = ze.ze_graph_argument_value_tensor_t(at_x, strides)
        rig.table.pfnSetArgumentValue2(graph, 0, tensor)
        rig.execute(rig.recorded(graph))
        assert is_expected(rig.values(y), x)

    @pytest.mark.parametrize("strides", [(1, DEPTH + 1), (2, DEPTH)])
    def test_a_blob_without_their_relocations_rejects_other_strides(self, rig, x, strides) -> None:
        graph = rig.graph(dense_blob())
        rig.arguments(graph, x)
        before = dict(graph.arguments)
        at_x = ze.zeMemAllocHost(rig.context, 2 * x.nbytes)
        given = ze.ze_graph_argument_value_strides_t(strides)
        tensor = ze.ze_graph_argument_value_tensor_t(at_x, given)
        call = rig.table.pfnSetArgumentValue2
        error = rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: call(graph, 0, tensor))
        assert "dense" in str(error)
        assert graph.arguments == before

    def test_invalid_chains_are_rejected(self, rig) -> None:
        graph = rig.graph(dense_blob())
        call = rig.table.pfnSetArgumentValue2
        null = ze.ze_graph_argument_value_tensor_t(0)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_NULL_POINTER, lambda: call(graph, 0, null))
        long = None
        for _ in range(50):
            long = ze.ze_graph_argument_value_strides_t((1, COLS), long)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: call(graph, 1, long))
        missing = ze.ze_graph_argument_value_tensor_t(4096)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: call(graph, 2, missing))
        assert rig.table.pfnGraphGetArgumentMetadata(graph, 1).shape == (ROWS, COLS)
