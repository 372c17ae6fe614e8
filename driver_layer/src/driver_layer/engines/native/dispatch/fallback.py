"""Rows that call back into Python: tasks that the reference engine runs."""

from __future__ import annotations

import ctypes

from driver_layer.engines.contract import Run

_Row = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

FAULT = 1
"""The status of a task that ended in a fault."""


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
            except Exception:  # to explain the fault, the executor runs the task again
                return FAULT
            return 0

        self._function = _Row(call)

    @property
    def address(self) -> int:
        """Where the kernel is."""
        return ctypes.cast(self._function, ctypes.c_void_p).value or 0
