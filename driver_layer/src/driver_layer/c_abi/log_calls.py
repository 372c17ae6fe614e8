"""A log of all calls: one line for each, with its arguments, result and time."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import Any

from driver_layer.c_abi import CALLS_VARIABLE
from driver_layer.c_abi.declarations import numbers_at
from driver_layer.c_abi.description.language import Function

_LOG = logging.getLogger("driver_layer.c_abi.calls")


def requested() -> bool:
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


def logged(function: Function, call: Any) -> Any:
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
