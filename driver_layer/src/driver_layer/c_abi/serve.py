"""The Python side of a process that has loaded the library."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from typing import Any

from driver_layer import ze
from driver_layer.c_abi import CALLS_VARIABLE
from driver_layer.c_abi.calls import INTERRUPTED, all_calls
from driver_layer.c_abi.declarations import at, ffi, numbers_at
from driver_layer.c_abi.description.language import Function, description
from driver_layer.c_abi.emit_c import key
from driver_layer.c_abi.parameters import TABLES
from driver_layer.c_abi.structures import text_at

_LOG = logging.getLogger("driver_layer.c_abi.calls")
"""Log of all calls: one line for each, with its arguments, result and time."""

_LAST_CALLS_SECONDS = 10.0

_PRIVATE = ze.zex_dditable_ext_t.__name__
"""The table whose functions are found by their own names."""

_kept: list[Any] = []
"""Objects that C refers to."""


def serve(address: int) -> None:
    """Connect a loaded library; a second call for the same one does nothing.

    Args:
        address: address of the library's state, ``front`` in ``front.c``.

    Raises:
        RuntimeError: the library was built from another description.
    """
    front = at("front_t", address)
    theirs = text_at(front.key)
    if theirs != key():
        raise RuntimeError(
            f"the library is of another version of driver_layer, {theirs!r} and not {key()!r}: "
            "npu-run builds the right one"
        )
    if front.dispatch:
        return
    extensions = [table for table in description().tables if not table.api]
    for index, table in enumerate(extensions):
        TABLES[table.name] = front.tables[index]
        if table.name == _PRIVATE:
            addresses = at("uintptr_t", front.tables[index])
            for place, function in enumerate(table.functions):
                TABLES[function.name] = addresses[place]
    ze.use_host_addresses()
    _show_log()
    calls = all_calls()
    if _log_requested():
        functions = [function for _, function in description().functions()]
        calls = [_logged(*pair) for pair in zip(functions, calls, strict=True)]

    def dispatch(function: int, arguments: Any) -> int:
        return calls[function](arguments)

    callback = ffi.callback(
        "uint32_t(uint32_t, const uint64_t *)", dispatch, error=INTERRUPTED, onerror=_ignored
    )
    _kept.append(callback)
    atexit.register(_end, front)
    front.dispatch = callback


def _log_requested() -> bool:
    """Return whether the environment asks for the log; then set it up, on stderr."""
    if not os.environ.get(CALLS_VARIABLE):
        return False
    if not _LOG.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        _LOG.addHandler(handler)
        _LOG.setLevel(logging.INFO)
        _LOG.propagate = False
    return True


def _logged(function: Function, call: Any) -> Any:
    """Return a call that also logs itself.

    Args:
        function: description of the function.
        call: the call, by the address of its arguments.
    """
    names = [parameter.name for parameter in function.parameters or ()]

    def log(address: Any) -> int:
        numbers = numbers_at("uint64_t", address, len(names))
        begin = time.perf_counter_ns()
        result: int = call(address)
        microseconds = (time.perf_counter_ns() - begin) / 1000
        given = ", ".join(f"{n}={v:#x}" for n, v in zip(names, numbers, strict=True))
        thread = threading.get_native_id()
        _LOG.info("%d %s(%s) = %#x, %.1f us", thread, function.name, given, result, microseconds)
        return result

    return log


def _show_log() -> None:
    """Print the log on stderr if its level is set, and the host prints it nowhere."""
    if os.environ.get("ZE_INTEL_NPU_LOGLEVEL") and not logging.getLogger().handlers:
        logging.getLogger("driver_layer").addHandler(logging.StreamHandler())


def _ignored(kind: Any, error: Any, traceback: Any) -> None:
    """Drop the exception of a signal handler; ``front.c`` has it raised again by INTERRUPTED."""


def _end(front: Any) -> None:
    """Refuse further calls, as the interpreter ends, and let those that run come to an end."""
    front.ended = 1
    deadline = time.monotonic() + _LAST_CALLS_SECONDS
    while front.active and time.monotonic() < deadline:
        time.sleep(0.001)
