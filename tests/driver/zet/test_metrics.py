"""Metric groups and queries, with the public driver's result codes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.driver.ze.conftest import Rig

from driver_layer import ze, zet
from driver_layer.testing.blobs import DEPTH, ROWS, dense_blob
from driver_layer.ze import ze_result_t as r

VALUES, MAXIMA = zet.zet_metric_group_calculation_type_t
EXECUTION = zet.zet_metric_query_pool_type_t.ZET_METRIC_QUERY_POOL_TYPE_EXECUTION
POOL = zet.zet_metric_query_pool_desc_t(EXECUTION, 2)


@pytest.fixture
def rig() -> Rig:
    driver = ze.simulated_driver("4000")
    device = driver.device
    context = ze.zeContextCreate(driver)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
    return Rig(device, context, table, ze.zeCommandQueueCreate(context, device))


@pytest.fixture
def group(rig, monkeypatch) -> zet.zet_metric_group_handle_t:
    monkeypatch.setenv("ZET_ENABLE_METRICS", "1")
    (group,) = zet.zetMetricGroupGet(rig.device)
    zet.zetContextActivateMetricGroups(rig.context, rig.device, [group])
    yield group
    zet.zetContextActivateMetricGroups(rig.context, rig.device, [])


def test_metrics_must_be_enabled(rig, monkeypatch) -> None:
    monkeypatch.delenv("ZET_ENABLE_METRICS", raising=False)
    code = r.ZE_RESULT_ERROR_UNINITIALIZED
    rig.fails(code, lambda: zet.zetMetricGroupGet(rig.device))


def test_a_query_counts_the_inferences_between_its_commands(rig, group) -> None:
    pool = zet.zetMetricQueryPoolCreate(rig.context, rig.device, group, POOL)
    query = zet.zetMetricQueryCreate(pool, 0)
    get = zet.zetMetricQueryGetData
    rig.fails(r.ZE_RESULT_NOT_READY, lambda: get(query))
    graph = rig.graph(dense_blob())
    rig.arguments(graph, np.ones((ROWS, DEPTH), np.float32))
    commands = ze.zeCommandListCreate(rig.context, rig.device)
    zet.zetCommandListAppendMetricQueryBegin(commands, query)
    for _ in range(3):
        rig.table.pfnAppendGraphExecute(commands, graph)
    zet.zetCommandListAppendMetricMemoryBarrier(commands)
    zet.zetCommandListAppendMetricQueryEnd(commands, query)
    ze.zeCommandListClose(commands)
    rig.execute(rig.recorded(graph), commands)
    raw = get(query)
    names = [zet.zetMetricGetProperties(each).name for each in zet.zetMetricGet(group)]
    assert zet.zetMetricGroupGetProperties(group).metricCount == len(names)
    values = zet.zetMetricGroupCalculateMetricValues(group, VALUES, raw)
    found = dict(zip(names, (each.value for each in values), strict=True))
    assert (found["Inferences"], found["Faults"]) == (3, 0)
    assert found["ActiveTime"] > 0
    assert found["Elapsed"] > 0
    twice = zet.zetMetricGroupCalculateMetricValues(group, MAXIMA, raw + bytes(len(raw)))
    assert twice == values
    zet.zetMetricQueryReset(query)
    rig.fails(r.ZE_RESULT_NOT_READY, lambda: get(query))
    calculate = zet.zetMetricGroupCalculateMetricValues
    rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: calculate(group, VALUES, raw[:-1]))
    destroy = zet.zetMetricQueryPoolDestroy
    rig.fails(r.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, lambda: destroy(pool))
    zet.zetMetricQueryDestroy(query)
    destroy(pool)


def test_a_group_belongs_to_one_context_at_a_time(rig, group) -> None:
    other = ze.zeContextCreate(rig.device.driver)
    activate = zet.zetContextActivateMetricGroups
    code = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
    rig.fails(code, lambda: activate(other, rig.device, [group]))
    activate(rig.context, rig.device, [])
    activate(other, rig.device, [group])
    ze.zeContextDestroy(other)
    activate(rig.context, rig.device, [group])


def test_queries_need_an_active_group_and_a_free_index(rig, group) -> None:
    pool = zet.zetMetricQueryPoolCreate(rig.context, rig.device, group, POOL)
    create = zet.zetMetricQueryCreate
    query = create(pool, 1)
    rig.fails(r.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, lambda: create(pool, 1))
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: create(pool, 2))
    zet.zetContextActivateMetricGroups(rig.context, rig.device)
    missing = r.ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE
    rig.fails(missing, lambda: create(pool, 0))
    commands = ze.zeCommandListCreate(rig.context, rig.device)
    begin = zet.zetCommandListAppendMetricQueryBegin
    rig.fails(missing, lambda: begin(commands, query))
    make = zet.zetMetricQueryPoolCreate
    rig.fails(r.ZE_RESULT_NOT_READY, lambda: make(rig.context, rig.device, group, POOL))
