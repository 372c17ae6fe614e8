"""Errors of calls, by their result codes, and this thread's last error.

A function of a code's name returns its error with a message; ``failed`` those of any code.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import IntFlag
from functools import partial
from typing import TypeVar

from driver_layer.errors import ZeError
from driver_layer.ze.result import ze_result_t

T = TypeVar("T")

Codes = Mapping[type[Exception], ze_result_t]
"""Result codes by the classes of errors."""

_last = threading.local()


def failed(code: ze_result_t, message: str) -> ZeError:
    """Return the error of a call; its text is this thread's last error, and its latest log."""
    _last.text = _last.log = message
    return ZeError(code, message)


handle_object_in_use = partial(failed, ze_result_t.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE)
invalid_argument = partial(failed, ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT)
invalid_command_list_type = partial(failed, ze_result_t.ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE)
invalid_enumeration = partial(failed, ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION)
invalid_size = partial(failed, ze_result_t.ZE_RESULT_ERROR_INVALID_SIZE)
invalid_synchronization_object = partial(
    failed, ze_result_t.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT
)
not_ready = partial(failed, ze_result_t.ZE_RESULT_NOT_READY)
uninitialized = partial(failed, ze_result_t.ZE_RESULT_ERROR_UNINITIALIZED)
unsupported_alignment = partial(failed, ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT)
unsupported_enumeration = partial(failed, ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)
unsupported_feature = partial(failed, ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
unsupported_size = partial(failed, ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_SIZE)


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
        raise invalid_enumeration(f"unknown flags {int(flags):#x} of {known.__name__}")


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
