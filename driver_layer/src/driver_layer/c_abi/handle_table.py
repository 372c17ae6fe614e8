"""Handles of C: numbers that stand for the driver's objects.

A number is never an address and is never used twice, so a handle that was freed, or that some other
library made, is found to be unknown; nothing is read through it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

from driver_layer.ze import errors
from driver_layer.ze.calls import Handle
from driver_layer.ze.result import ze_result_t

_FIRST = 0x4E50_5500_0000
"""Any number that is unlikely in another library; its bytes spell NPU."""


class HandleTable:
    """The objects that callers hold handles of; each stays alive until it is destroyed."""

    def __init__(self) -> None:
        self._objects: dict[int, Handle] = {}
        self._handles: dict[Handle, int] = {}
        self._numbers = itertools.count(_FIRST, 16)
        self._lock = threading.Lock()

    def handle_of(self, thing: Handle) -> int:
        """Return the handle of an object, the same one each time."""
        with self._lock:
            if thing not in self._handles:
                number = next(self._numbers)
                self._objects[number] = thing
                self._handles[thing] = number
            return self._handles[thing]

    def object_of(self, handle: int, name: str) -> Handle | None:
        """Return the object of a handle, or None for a null handle.

        Args:
            handle: the handle.
            name: name of the parameter.

        Raises:
            ZeError: INVALID_ARGUMENT: the handle is unknown.
        """
        if not handle:
            return None
        found = self._objects.get(handle)
        if found is None:
            message = f"{name} is {handle:#x}: no handle of this driver, or destroyed"
            raise errors.invalid_argument(message)
        return found

    def required(self, handle: int, name: str) -> Handle:
        """Return the object of a handle.

        Raises:
            ZeError: INVALID_NULL_HANDLE; else as ``object_of``.
        """
        found = self.object_of(handle, name)
        if found is None:
            message = f"{name} is null; a handle is required"
            raise errors.failed(ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_HANDLE, message)
        return found

    def forget(self, thing: Handle) -> None:
        """Remove an object that was destroyed."""
        with self._lock:
            handle = self._handles.pop(thing, None)
            if handle is not None:
                del self._objects[handle]

    def __iter__(self) -> Iterator[Handle]:
        return iter(tuple(self._handles))

    def __len__(self) -> int:
        return len(self._objects)


HANDLES = HandleTable()
"""The process's table: all loaded libraries share one driver."""
