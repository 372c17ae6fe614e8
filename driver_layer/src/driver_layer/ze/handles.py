"""What all Level Zero objects have in common: they are alive until they are destroyed."""

from __future__ import annotations

from typing import TypeVar

from driver_layer.ze.result import failed, ze_result_t


class Handle:
    """An object that a caller holds."""

    def __init__(self) -> None:
        self.alive = True


H = TypeVar("H", bound=Handle)


def check(handle: H | None, kind: type[H]) -> H:
    """Give the handle if it is a living object of its kind.

    Raises:
        ZeError: INVALID_NULL_HANDLE for None, INVALID_ARGUMENT for anything else.
    """
    if handle is None:
        message = f"no {kind.__name__} given"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_HANDLE, message)
    if not isinstance(handle, kind) or not handle.alive:  # pyright: ignore[reportUnnecessaryIsInstance] (callers may err)
        message = f"not a living {kind.__name__}: {handle!r}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
    return handle
