"""Rows that call back into Python, for tasks that the reference engine runs."""

from __future__ import annotations

import ctypes

from driver_layer.engines.contract import Run

_Row = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

FAULT = 1
"""Status of a task that raised an exception."""


class PythonRow:
    """A prepared task as a kernel.

    Args:
        run: the task.
    """

    def __init__(self, run: Run) -> None:
        def call(arguments: int, scratch: int) -> int:
            del arguments, scratch
            try:
                run()
            except Exception:  # the executor runs the task again to explain the fault
                return FAULT
            return 0

        self._function = _Row(call)

    @property
    def address(self) -> int:
        """Address of the C function."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0
