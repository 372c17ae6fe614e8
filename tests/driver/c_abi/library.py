"""The library for programs in C, in this process: its functions by ctypes, and a device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driver_layer.c_abi.declarations import at, ffi
from driver_layer.c_abi.description.language import Function, description
from driver_layer.c_abi.emit_c import c_type
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob

SUCCESS, NOT_READY = 0, 1
UNINITIALIZED, UNSUPPORTED_VERSION, UNSUPPORTED_FEATURE = 0x78000001, 0x78000002, 0x78000003
INVALID_ARGUMENT, INVALID_NULL_HANDLE, INVALID_NULL_POINTER = 0x78000004, 0x78000005, 0x78000007
INVALID_SIZE, INVALID_ENUMERATION = 0x78000008, 0x7800000C
X_BYTES, Y_BYTES = ROWS * DEPTH * 4, ROWS * COLS * 4
FOREVER = (1 << 64) - 1

_INTEGERS = {
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
}


class IpcHandle(ctypes.Structure):
    """Passed by value."""

    _fields_ = (("data", ctypes.c_char * 64),)


def argument_types(function: Function) -> list[Any]:
    """Return the types of a function's parameters for ctypes."""
    types = list[Any]()
    for parameter in function.parameters or ():
        kind = "void *" if parameter.way else c_type(parameter)
        by_value = IpcHandle if kind.startswith("struct") else ctypes.c_void_p
        types.append(_INTEGERS.get(kind, by_value))
    return types


class Npu:
    """All functions by their names, those of extensions too; each returns a result code.

    ``make`` calls a function whose last argument is a result, and returns that result.
    """

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.functions: dict[str, tuple[Function, Callable[..., int]]] = {}
        for table, function in description().functions():
            if table.api:
                call = getattr(self.library, function.name)
                call.restype, call.argtypes = ctypes.c_uint32, argument_types(function)
                self.functions[function.name] = function, call

    def __getattr__(self, name: str) -> Callable[..., int]:
        return self.functions[name][1]

    def add_extensions(self, handle: int) -> None:
        """Add the functions of the extensions' tables that a driver returns."""
        names = {
            "ze_graph_dditable_ext_t": b"ZE_extension_graph",
            "ze_graph_profiling_dditable_ext_t": b"ZE_extension_profiling_data",
            "ze_command_queue_npu_dditable_ext_t": b"ZE_extension_command_queue_npu",
            "ze_context_npu_dditable_ext_t": b"ZE_extension_context_npu",
            "ze_driver_npu_dditable_ext_t": b"ZE_extension_driver_npu",
        }
        for table in description().tables:
            if table.name in names:
                name = ctypes.create_string_buffer(names[table.name])
                found = self.make(
                    "zeDriverGetExtensionFunctionAddress", handle, ctypes.addressof(name)
                )
                for function, address in zip(
                    table.functions,
                    ffi.unpack(at("uintptr_t", found), len(table.functions)),
                    strict=True,
                ):
                    kind = ctypes.CFUNCTYPE(ctypes.c_uint32, *argument_types(function))
                    self.functions[function.name] = function, kind(address)

    def make(self, name: str, *given: Any, expect: int = SUCCESS) -> int:
        result = ctypes.c_uint64(0)
        assert getattr(self, name)(*given, ctypes.addressof(result)) == expect
        return result.value


@dataclass
class Rig:
    """A device with a context and a queue; structures live as long as the rig."""

    npu: Npu
    driver: int
    device: int
    context: int
    queue: int
    kept: list[Any]

    def struct(self, name: str, /, **fields: Any) -> int:
        """Return the address of a structure with these fields; stype is the description's."""
        made = ffi.new(f"{name} *", fields)
        stype = description().structs[name].stype
        if stype is not None:
            made.stype = stype
        self.kept.append(made)
        return int(ffi.cast("uintptr_t", made))

    def read(self, name: str, address: int) -> Any:
        return at(name, address)

    def buffer(self, content: bytes) -> int:
        made = ffi.from_buffer(bytearray(content))
        self.kept.append(made)
        return int(ffi.cast("uintptr_t", made))

    def host(self, size: int = 4096) -> int:
        desc = self.struct("ze_host_mem_alloc_desc_t")
        return self.npu.make("zeMemAllocHost", self.context, desc, size, 0)

    def view(self, address: int, count: int) -> np.ndarray:
        """Return ``count`` f32 numbers at an address."""
        return np.frombuffer(ffi.buffer(at("float", address), count * 4), np.float32)

    def desc_of(self, blob: bytes, **fields: Any) -> int:
        return self.struct(
            "ze_graph_desc_2_t", format=1, inputSize=len(blob), pInput=self.buffer(blob), **fields
        )

    def graph(self, blob: bytes | None = None) -> int:
        return self.npu.make(
            "pfnCreate2", self.context, self.device, self.desc_of(blob or dense_blob())
        )

    def bound_graph(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Return a graph with both arguments set, and their views."""
        graph, x, y = self.graph(), self.host(X_BYTES), self.host(Y_BYTES)
        assert self.npu.pfnSetArgumentValue(graph, 0, x) == SUCCESS
        assert self.npu.pfnSetArgumentValue(graph, 1, y) == SUCCESS
        at_x = self.view(x, ROWS * DEPTH).reshape(ROWS, DEPTH)
        return graph, at_x, self.view(y, ROWS * COLS).reshape(ROWS, COLS)

    def list(self, mutable: bool = False) -> int:
        next_one = self.struct("ze_mutable_command_list_exp_desc_t") if mutable else 0
        desc = self.struct("ze_command_list_desc_t", pNext=next_one)
        return self.npu.make("zeCommandListCreate", self.context, self.device, desc)

    def run(self, *lists: int) -> None:
        """Close, execute and wait for lists."""
        for one in lists:
            assert self.npu.zeCommandListClose(one) == SUCCESS
        handles = (ctypes.c_uint64 * len(lists))(*lists)
        execute = self.npu.zeCommandQueueExecuteCommandLists
        assert execute(self.queue, len(lists), ctypes.addressof(handles), None) == SUCCESS
        assert self.npu.zeCommandQueueSynchronize(self.queue, FOREVER) == SUCCESS
