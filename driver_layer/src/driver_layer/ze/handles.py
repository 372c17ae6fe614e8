"""The base class of Level Zero objects, which are alive until they are destroyed."""

from __future__ import annotations

from typing import ClassVar, Never, SupportsIndex, TypeVar

from driver_layer.errors import DriverUsageError
from driver_layer.ze.result import failed, ze_result_t


class Handle:
    """Handle of an object; callers hold handles."""

    null: ClassVar = ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    """Result code of a call that receives None instead of the handle."""

    def __init__(self) -> None:
        self.alive = True

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles: a handle names one object of the device.

        Raises:
            DriverUsageError: always.
        """
        raise DriverUsageError(
            f"{type(self).__name__}: a handle cannot be copied or pickled; create another one"
        )


H = TypeVar("H", bound=Handle)


def check(handle: H | None, kind: type[H]) -> H:
    """Return the handle if it is an object of its kind and alive.

    Raises:
        ZeError: INVALID_NULL_HANDLE for None, INVALID_ARGUMENT for anything else.
    """
    if handle is None:
        message = f"{kind.__name__} is None; a handle is required"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_HANDLE, message)
    if not isinstance(handle, kind) or not handle.alive:  # pyright: ignore[reportUnnecessaryIsInstance] (callers may err)
        message = f"{handle!r} is not a {kind.__name__}, or was destroyed"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
    return handle


T = TypeVar("T")


def given(pointer: T | None, name: str) -> T:
    """Return the object that a pointer points to.

    Args:
        pointer: a descriptor, memory or a pattern; None represents a null pointer.
        name: name of the parameter.

    Raises:
        ZeError: INVALID_NULL_POINTER for None.
    """
    if pointer is None:
        raise failed(
            ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_POINTER, f"{name}: the pointer is null"
        )
    return pointer
