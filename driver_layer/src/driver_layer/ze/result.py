"""Result codes of Level Zero, and the errors of calls.

Source: Level Zero core specification 1.17, ``ze_result_t``.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import IntEnum, IntFlag
from typing import TypeVar

from driver_layer.errors import ZeError


class ze_result_t(IntEnum):
    """Result codes that this driver returns."""

    ZE_RESULT_SUCCESS = 0
    ZE_RESULT_NOT_READY = 1
    ZE_RESULT_ERROR_DEVICE_LOST = 0x70000001
    ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY = 0x70000002
    ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY = 0x70000003
    ZE_RESULT_ERROR_NOT_AVAILABLE = 0x70010001
    ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE = 0x70020000
    ZE_RESULT_ERROR_UNINITIALIZED = 0x78000001
    ZE_RESULT_ERROR_UNSUPPORTED_VERSION = 0x78000002
    ZE_RESULT_ERROR_UNSUPPORTED_FEATURE = 0x78000003
    ZE_RESULT_ERROR_INVALID_ARGUMENT = 0x78000004
    ZE_RESULT_ERROR_INVALID_NULL_HANDLE = 0x78000005
    ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE = 0x78000006
    ZE_RESULT_ERROR_INVALID_NULL_POINTER = 0x78000007
    ZE_RESULT_ERROR_INVALID_SIZE = 0x78000008
    ZE_RESULT_ERROR_UNSUPPORTED_SIZE = 0x78000009
    ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT = 0x7800000A
    ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT = 0x7800000B
    ZE_RESULT_ERROR_INVALID_ENUMERATION = 0x7800000C
    ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION = 0x7800000D
    ZE_RESULT_ERROR_INVALID_NATIVE_BINARY = 0x7800000F
    ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE = 0x78000019
    ZE_RESULT_ERROR_UNKNOWN = 0x7FFFFFFE


T = TypeVar("T")

Codes = Mapping[type[Exception], ze_result_t]
"""Result codes by the classes of errors."""

_last = threading.local()


def failed(code: ze_result_t, message: str) -> ZeError:
    """Return the error of a call; its text is this thread's last error, and its latest log."""
    _last.text = _last.log = message
    return ZeError(code, message)


@contextmanager
def failing_as(codes: Codes) -> Generator[None]:
    """Convert the exceptions of a block to ZeError, with the code of the first class that fits."""
    try:
        yield
    except tuple(codes) as error:
        code = next(codes[kind] for kind in codes if isinstance(error, kind))
        raise failed(code, str(error)) from error


def check_known(flags: int, known: type[IntFlag]) -> None:
    """Raise ZeError INVALID_ENUMERATION if a flag is not in the specification."""
    if int(flags) & ~sum(known):
        message = f"unknown flags {int(flags):#x} of {known.__name__}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION, message)


def not_null(pointer: T | None, name: str) -> T:
    """Return a pointer: an address, or the object that it points to.

    Args:
        pointer: the pointer; None and 0 represent a null pointer.
        name: name of the parameter.

    Raises:
        ZeError: INVALID_NULL_POINTER: the pointer is null.
    """
    if not pointer:
        message = f"{name}: the pointer is null"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_POINTER, message)
    return pointer


def last_error() -> str:
    """Return the text of this thread's last error; empty if none occurred."""
    return str(getattr(_last, "text", ""))


def keep_log(text: str) -> None:
    """Store the log of a graph's creation as this thread's latest log."""
    _last.log = text


def latest_log() -> str:
    """Return the log of this thread's latest creation of a graph, or a later error."""
    return str(getattr(_last, "log", ""))
