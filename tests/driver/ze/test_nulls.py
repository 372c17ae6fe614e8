"""Null handles and null pointers result in Level Zero's codes, never in Python's errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from driver_layer import ze
from driver_layer.testing.blobs import dense_blob
from driver_layer.ze import ze_result_t as r

EXTENSIONS = (
    "ZE_extension_graph",
    "ZE_extension_profiling_data",
    "ZE_extension_command_queue_npu",
)
POINTERS = ("desc", "ptr", "dstptr", "srcptr", "pattern", "handle", "pArgValue")
OTHERS = {
    # linux-npu-driver checks only the list first, and fails later for lack of a graph.
    ("pfnAppendGraphInitialize", "hGraph"): r.ZE_RESULT_ERROR_UNINITIALIZED,
}


@pytest.fixture
def arguments(rig) -> dict[str, Any]:
    """A value for each parameter of the API, by its name in the specification."""
    (driver,) = ze.zeInitDrivers(0)
    device, context, queue = rig.device, rig.context, rig.queue
    pool = ze.zeEventPoolCreate(context, ze.ze_event_pool_desc_t(count=4))
    memory = ze.zeMemAllocHost(context, 4096)
    return {
        "hDriver": driver,
        "hDevice": device,
        "hContext": context,
        "hCommandQueue": queue,
        "hCommandList": ze.zeCommandListCreate(context, device),
        "hEventPool": pool,
        "hEvent": ze.zeEventCreate(pool, ze.ze_event_desc_t(0)),
        "hFence": ze.zeFenceCreate(queue),
        "hGraph": rig.graph(dense_blob()),
        "dstptr": memory,
        "srcptr": memory,
        "ptr": memory,
        "pattern": b"\0",
        "size": 64,
        "alignment": 0,
        "argIndex": 0,
        "pArgValue": memory,
    }


def functions(driver: ze.ze_driver_handle_t) -> dict[str, Callable[..., Any]]:
    """Return all functions of the API and of the extensions' tables."""
    found = {name: value for name, value in vars(ze).items() if inspect.isfunction(value)}
    for extension in EXTENSIONS:
        table = ze.zeDriverGetExtensionFunctionAddress(driver, extension)
        found |= {name: getattr(table, name) for name in dir(table) if name.startswith("pfn")}
    return found


def test_null_handles_and_null_pointers_have_their_own_codes(rig, arguments) -> None:
    tried = 0
    for name, function in functions(arguments["hDriver"]).items():
        required = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is inspect.Parameter.empty
        ]
        for index, null in enumerate(required):
            before = required[:index]
            handle = null[0] == "h" and null[1].isupper()
            if not (handle or null in POINTERS) or not arguments.keys() >= {*before}:
                continue
            usual = r.ZE_RESULT_ERROR_INVALID_NULL_POINTER
            if handle:
                usual = r.ZE_RESULT_ERROR_INVALID_NULL_HANDLE
            given = [arguments[each] for each in before]
            given += [None, *(arguments.get(each) for each in required[index + 1 :])]
            with pytest.raises(ze.ZeError) as caught:
                function(*given)
            assert caught.value.code is OTHERS.get((name, null), usual), f"{name}, {null}"
            tried += 1
    assert tried > 60
