"""Compiled kernels by key, from memory, the disk cache, or the compiler."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from driver_layer.engines.native.jit import cache
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.engines.native.jit.code import compile_ir, load_object
from driver_layer.engines.native.jit.emitter import SYMBOL
from driver_layer.engines.native.jit.host import Host


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel's source; equal keys mean equal code."""

    key: str
    write: Callable[[Host], str]
    """Returns the kernel's module of LLVM IR."""


class Kernels:
    """Kernels of one host; safe for use by several threads.

    Args:
        host: processor that the kernels are for.
        objects: cache of compiled kernels; by default the user's.
    """

    def __init__(self, host: Host, objects: ObjectCache | None = None) -> None:
        self.host = host
        self._objects = ObjectCache(cache.default_folder()) if objects is None else objects
        self._addresses: dict[str, int] = {}
        self._kept: list[object] = []
        self._lock = threading.Lock()
        self.compiled = 0
        """Number of kernels compiled rather than loaded."""

    def address(self, spec: KernelSpec) -> int:
        """Return the address of a kernel's code, which stays valid in this process."""
        with self._lock:
            found = self._addresses.get(spec.key)
            if found is None:
                found = self._addresses[spec.key] = self._load(spec)
            return found

    def keys(self) -> dict[int, str]:
        """Return the keys of all loaded kernels by address, for profiles."""
        with self._lock:
            return {address: key for key, address in self._addresses.items()}

    def _load(self, spec: KernelSpec) -> int:
        key = f"{self.host.key} {cache.source_digest()} {spec.key}"
        found = self._objects.read(key)
        if found is not None:
            image = bytes(found)
        else:
            image = compile_ir(spec.write(self.host), self.host)
            self.compiled += 1
            self._objects.write(key, image)
        address, keeper = load_object(image, SYMBOL)
        self._kept.append(keeper)
        return address
