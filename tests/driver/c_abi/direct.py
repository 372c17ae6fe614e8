"""The border without a second process: this process is host and driver at once.

Tests that look into the driver, or change something in it, call it here; the numbers of a call take
the same way as behind the library.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.driver.c_abi.library import argument_types

from driver_layer import ze
from driver_layer.c_abi import host
from driver_layer.c_abi.calls import Call, all_calls
from driver_layer.c_abi.description.language import Function, description
from driver_layer.c_abi.host_process import CallingProcess
from driver_layer.c_abi.parameters import TABLES
from driver_layer.ze import driver

POPULATE_READ, POPULATE_WRITE = 22, 23
PRIVATE = [
    each.name
    for table in description().tables
    for each in table.functions
    if each.name[:3] == "zex"
]
"""Functions that are found by their names alone."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def carry_out(request: str, *words: int) -> int:
    """Carry out a request of the driver, as ``process.c`` does in the host."""
    if request == "MAP":
        descriptor, size, writable = words
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        found = _libc.mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
        return _checked(-1 if found == ctypes.c_size_t(-1).value else found)
    if request == "UNMAP":
        return _checked(_libc.munmap(*words))
    if request == "POPULATE":
        address, size, write = words
        return _checked(_libc.madvise(address, size, POPULATE_WRITE if write else POPULATE_READ))
    if request == "OPEN":
        return os.dup(words[0])
    os.close(words[0])
    return 0


def _checked(result: int) -> int:
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class DirectNpu:
    """All functions by their names, as ``library.Npu``; each returns a result code."""

    def __init__(self) -> None:
        self.functions: dict[str, tuple[Function, Callable[..., int]]] = {}
        for (_, function), call in zip(description().functions(), all_calls(), strict=True):
            self.functions[function.name] = function, _by_numbers(call)

    def __getattr__(self, name: str) -> Callable[..., int]:
        return self.functions[name][1]

    def add_extensions(self, handle: int) -> None:
        """Do nothing: the extensions' functions need no table."""

    def make(self, name: str, *given: Any, expect: int = 0) -> int:
        result = ctypes.c_uint64(0)
        assert getattr(self, name)(*given, ctypes.addressof(result)) == expect
        return result.value


def _by_numbers(call: Call) -> Callable[..., int]:
    return lambda *given: call([_number(each) for each in given])


def _number(given: Any) -> int:
    if isinstance(given, ctypes.Structure):
        return ctypes.addressof(given)
    return given or 0


def _thunk(function: Function, call: Callable[..., int]) -> Any:
    """Return a function of C that makes a call."""
    return ctypes.CFUNCTYPE(ctypes.c_uint32, *argument_types(function))(call)


@contextmanager
def border() -> Iterator[DirectNpu]:
    """Be the driver of this process."""
    hosts, kept = list(host._attached), driver._host
    caller = host.Host(os.getpid(), carry_out)
    host.attach(caller)
    TABLES.update({table.name: 1 for table in description().tables})
    made = DirectNpu()
    thunks = [_thunk(*made.functions[name]) for name in PRIVATE]
    for name, thunk in zip(PRIVATE, thunks, strict=True):
        TABLES[name] = ctypes.cast(thunk, ctypes.c_void_p).value or 0
    ze.serve_host(CallingProcess(caller))
    try:
        yield made
    finally:
        host._attached[:] = hosts
        ze.serve_host(kept)
