"""Nulls and objects of wrong types result in Level Zero's codes, never in Python's errors."""

from __future__ import annotations

import dataclasses
import inspect
import mmap
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from driver_layer import ze, zes, zet
from driver_layer.testing.blobs import dense_blob
from driver_layer.ze import ze_result_t as r

BLOB = dense_blob()
NULL_HANDLE = r.ZE_RESULT_ERROR_INVALID_NULL_HANDLE
NULL_POINTER = r.ZE_RESULT_ERROR_INVALID_NULL_POINTER
INVALID = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
TABLES = (
    ze.GRAPH_EXTENSION,
    ze.PROFILING_EXTENSION,
    ze.QUEUE_EXTENSION,
    ze.CONTEXT_EXTENSION,
    ze.DRIVER_EXTENSION,
)
WRONG: tuple[Any, ...] = (
    object(),
    1.5,
    "text",
    b"bytes",
    [object()],
    (),
    int,
    np.zeros((2, 2)),
    -1,
)
"""Objects of which at least all but one are wrong for any parameter."""


def functions() -> dict[str, Callable[..., Any]]:
    """Return all functions of the API and of the extensions' tables."""
    found = {
        name: value
        for module in (ze, zes, zet)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and re.match("ze[st]?[A-Z]", name)
    }
    (driver,) = ze.zeInitDrivers(0)
    for extension in TABLES:
        table = ze.zeDriverGetExtensionFunctionAddress(driver, extension)
        found |= {name: getattr(table, name) for name in dir(table) if name.startswith("pfn")}
    return found


FUNCTIONS = functions()


def core_values(rig) -> dict[str, Any]:
    """Return a value for each parameter of the core functions, by its name."""
    context, device, queue = rig.context, rig.device, rig.queue
    pool = ze.zeEventPoolCreate(context, ze.ze_event_pool_desc_t(count=4))
    memory = ze.zeMemAllocHost(context, 4096)
    region = ze.ze_copy_region_t(0, 0, 0, 4, 4, 1)
    immediate = ze.zeCommandListCreateImmediate(context, device, ze.ze_command_queue_desc_t())
    return {
        "hDriver": device.driver,
        "hDevice": device,
        "hPeerDevice": device,
        "hContext": context,
        "hContextSrc": context,
        "hCommandQueue": queue,
        "hCommandList": ze.zeCommandListCreate(context, device),
        "hCommandListImmediate": immediate,
        "hEventPool": pool,
        "hEvent": ze.zeEventCreate(pool, ze.ze_event_desc_t(0)),
        "hFence": ze.zeFenceCreate(queue),
        "altdesc": ze.ze_command_queue_desc_t(),
        "dstptr": memory,
        "srcptr": memory,
        "ptr": memory,
        "dstRegion": region,
        "srcRegion": region,
        "pattern": b"\0",
        "handle": ze.zeMemGetIpcHandle(context, rig.exportable()),
        "name": "ZE_extension_graph",
        "pRequirements": "npu=4000",
    } | {name: 0 for name in ("dstSlicePitch", "srcSlicePitch", "index", "alignment", "flags")} | {
        name: 8 for name in ("dstPitch", "srcPitch", "size", "timeout")
    }  # fmt: skip


def graph_values(rig) -> dict[str, Any]:
    """Return a value for each parameter of the extensions' functions, by its name."""
    graph = rig.graph(BLOB)
    profiling = ze.zeDriverGetExtensionFunctionAddress(rig.device.driver, ze.PROFILING_EXTENSION)
    _, log = rig.table.pfnCreate3(
        rig.context,
        rig.device,
        ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, BLOB),
    )
    return {
        "hGraph": graph,
        "hGraphBuildLog": log,
        "hGraphQueryNetwork": ze.ze_graph_query_network_handle_t(()),
        "argIndex": 0,
        "pArgValue": ze.zeMemAllocHost(rig.context, 4096),
        "pObjDesc": ze.ze_runtime_requirements_graph_desc_t(graph),
        "pOption": "PERF_COUNT",
        "ContextProperties": ze.ze_context_properties_npu_ext_t(0),
        "pExtension": ze.ze_driver_extension_npu_ext_t("ZE_extension_graph", 0),
        "workloadType": 0,
        "profilingType": 1,
        "count": 1,
        **pool_values(profiling, graph),
    }


def pool_values(profiling: Any, graph: Any) -> dict[str, Any]:
    """Return a profiling pool and a query, if the graph can be profiled."""
    try:
        pool = profiling.pfnProfilingPoolCreate(graph, 2)
    except ze.ZeError:
        return {}
    return {
        "hProfilingPool": pool,
        "hProfilingQuery": profiling.pfnProfilingQueryCreate(pool, 0),
    }


def tool_values(rig) -> dict[str, Any]:
    """Return a value for each parameter of sysman and metrics, by its name."""
    (engine,) = zes.zesDeviceEnumEngineGroups(rig.device)
    (module,) = zes.zesDeviceEnumMemoryModules(rig.device)
    (group,) = zet.zetMetricGroupGet(rig.device)
    zet.zetContextActivateMetricGroups(rig.context, rig.device, [group])
    pool = zet.zetMetricQueryPoolCreate(
        rig.context, rig.device, group, zet.zet_metric_query_pool_desc_t(0, 2)
    )
    return {
        "hEngine": engine,
        "hMemory": module,
        "hMetricGroup": group,
        "hMetric": zet.zetMetricGet(group)[0],
        "hMetricQueryPool": pool,
        "hMetricQuery": zet.zetMetricQueryCreate(pool, 0),
        "pRawData": bytes(32),
    }


DESCRIPTORS: dict[str, Any] = {
    "zeEventCreate": ze.ze_event_desc_t(1),
    "zeEventPoolCreate": ze.ze_event_pool_desc_t(1),
    "zeCommandListGetNextCommandIdExp": ze.ze_mutable_command_id_exp_desc_t(),
    "zeCommandListUpdateMutableCommandsExp": ze.ze_mutable_commands_exp_desc_t(
        ze.ze_mutable_graph_argument_exp_desc_t(0, 0, 4096)
    ),
    "zetMetricQueryPoolCreate": zet.zet_metric_query_pool_desc_t(0, 2),
    "pfnCreate": ze.ze_graph_desc_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, b"no"),
    "pfnQueryNetworkCreate": ze.ze_graph_desc_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, b"no"),
}
ARGUMENT_VALUE = ze.ze_graph_argument_value_tensor_t(4096)
OPTIONAL: dict[str, Any] = {
    "host_desc": ze.ze_host_mem_alloc_desc_t(
        pNext=ze.ze_external_memmap_sysmem_ext_desc_t(np.frombuffer(mmap.mmap(-1, 4096), np.uint8))
    ),
    "device_desc": ze.ze_device_mem_alloc_desc_t(),
}


@pytest.fixture
def values(rig, monkeypatch) -> Iterator[dict[str, Any]]:
    """A value for each parameter of all functions, by its name."""
    monkeypatch.setenv("ZET_ENABLE_METRICS", "1")
    yield core_values(rig) | graph_values(rig) | tool_values(rig)
    zet.zetContextActivateMetricGroups(rig.context, rig.device)


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(FUNCTIONS[name]).parameters)


def value_for(function: str, parameter: str, values: dict[str, Any]) -> Any:
    """Return a right value for a parameter; None if the test has none."""
    if parameter == "desc":
        native = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, b"no")
        usual = native if function.startswith("pfn") else None
        return DESCRIPTORS.get(function, usual)
    if function == "pfnSetArgumentValue2" and parameter == "pArgValue":
        return ARGUMENT_VALUE
    if parameter == "type":
        return 1
    return values.get(parameter)


def calls_with(function: str, wrong: str, value: Any, values: dict[str, Any]) -> Callable[[], Any]:
    """Return a call whose arguments up to a wrong one are right."""
    given: dict[str, Any] = {}
    for name, parameter in parameters_of(function).items():
        if name == wrong:
            given[name] = value
        elif parameter.default is inspect.Parameter.empty:
            given[name] = value_for(function, name, values)
    return lambda: FUNCTIONS[function](**given)


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_a_null_has_the_specifications_code(function, values) -> None:
    for name, parameter in parameters_of(function).items():
        handle = name[0] == "h" and name[1].isupper()
        right = value_for(function, name, values)
        pointer = not (handle or isinstance(right, int)) or isinstance(right, ze.Memory)
        if parameter.default is not inspect.Parameter.empty or not (handle or pointer):
            continue
        code = NULL_HANDLE if handle else NULL_POINTER
        if function == "pfnAppendGraphInitialize" and name == "hGraph":
            code = r.ZE_RESULT_ERROR_UNINITIALIZED  # as in linux-npu-driver and its tests
        with pytest.raises(ze.ZeError) as caught:
            calls_with(function, name, None, values)()
        assert caught.value.code is code, name


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_an_object_of_a_wrong_type_is_an_error_of_the_call(function, values) -> None:
    for name, parameter in parameters_of(function).items():
        refused = 0
        for value in (*WRONG, None):
            try:
                calls_with(function, name, value, values)()
            except ze.ZeError:
                refused += 1
        assert refused >= len(WRONG) - 5 or parameter.annotation == "int", name


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_a_field_of_a_wrong_type_is_an_error_of_the_call(function, values) -> None:
    for name in parameters_of(function):
        right = value_for(function, name, values) or OPTIONAL.get(name)
        if not dataclasses.is_dataclass(right):
            continue
        for field in dataclasses.fields(right):
            for value in (*WRONG, None):
                wrong = dataclasses.replace(right, **{field.name: value})
                try:
                    calls_with(function, name, wrong, values)()
                except ze.ZeError:
                    continue


def test_destroyed_handles_are_invalid_arguments(rig, values) -> None:
    commands = ze.zeCommandListCreate(rig.context, rig.device)
    ze.zeCommandListDestroy(commands)
    for function in ("zeCommandListClose", "zeCommandListReset", "zeCommandListAppendBarrier"):
        rig.fails(INVALID, lambda function=function: FUNCTIONS[function](commands))
    barrier = ze.zeCommandListAppendBarrier
    event = values["hEvent"]
    ze.zeEventDestroy(event)
    rig.fails(INVALID, lambda: barrier(values["hCommandList"], None, [event]))


def test_all_functions_are_tried() -> None:
    assert len(FUNCTIONS) >= 150
