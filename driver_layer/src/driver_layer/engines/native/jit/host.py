"""Instruction sets of the processor, and the settings with which LLVM uses them.

``NPU_NATIVE_ISA`` limits the instruction set: ``scalar``, ``portable`` (128-bit vectors that LLVM
lowers for any target: SSE, NEON), ``avx2``, ``avx512``, ``amx``.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from dataclasses import dataclass
from enum import IntEnum

import llvmlite.binding as llvm

from driver_layer.errors import EngineError

ISA_VARIABLE = "NPU_NATIVE_ISA"


class Isa(IntEnum):
    """Levels of vector instructions; each includes the levels below."""

    SCALAR = 0
    PORTABLE = 1
    AVX2 = 2
    AVX512 = 3
    AMX = 4
    """AVX-512, and matmuls in tile registers."""


_LANES = {Isa.SCALAR: 1, Isa.PORTABLE: 4, Isa.AVX2: 8, Isa.AVX512: 16, Isa.AMX: 16}

_NEEDS: dict[Isa, frozenset[str]] = {
    Isa.AVX2: frozenset({"avx2", "fma", "f16c"}),
    Isa.AVX512: frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
    Isa.AMX: frozenset({"amx-tile", "amx-bf16", "amx-int8", "avx512bf16", "avx512vnni"}),
}

_VECTOR_PREFIXES = ("avx", "fma", "f16c", "amx", "xop", "vaes", "vpclmul", "gfni")
"""x86 features that a limited host must not use."""


@dataclass(frozen=True, slots=True)
class Host:
    """A processor that kernels are compiled for."""

    triple: str
    cpu: str
    isa: Isa
    features: frozenset[str]

    @property
    def lanes(self) -> int:
        """Number of f32 lanes of a vector."""
        return _LANES[self.isa]

    @property
    def converts_f16(self) -> bool:
        """True if LLVM converts between f16 and f32 without a library."""
        return "f16c" in self.features or self.triple.startswith(("aarch64", "arm64"))

    @property
    def has_fma(self) -> bool:
        """True if the processor has fused multiply-add."""
        return "fma" in self.features or self.triple.startswith(("aarch64", "arm64"))

    @property
    def dots_bf16(self) -> bool:
        """True if the processor has dot products of bf16 pairs with f32 sums."""
        return self.isa >= Isa.AVX512 and "avx512bf16" in self.features

    @property
    def dots_bf16_fast(self) -> bool:
        """True if bf16 dot products have a higher throughput than f32 FMA.

        The ratio is 2 on AMD's processors (Zen 5: 490 to 245 GFLOP/s a core), 1/2 on Intel's (120
        to 240). SSE4a identifies AMD's processors, at any level.
        """
        return self.dots_bf16 and "sse4a" in self.features

    @property
    def dots_bytes(self) -> bool:
        """True if the processor has dot products of byte quadruples with i32 sums."""
        return self.isa >= Isa.AVX512 and "avx512vnni" in self.features

    @property
    def has_tiles(self) -> bool:
        """True if the processor has matmuls of bf16 and of bytes in tile registers."""
        return self.isa is Isa.AMX

    @property
    def key(self) -> str:
        """Identifier of code for this host."""
        return " ".join((self.triple, self.cpu, self.isa.name, *sorted(self.features)))

    def target_machine(self) -> llvm.TargetMachine:
        """Return LLVM's code generator for this host."""
        known = llvm.get_host_cpu_features()
        flags = ",".join(f"{'+' if name in self.features else '-'}{name}" for name in sorted(known))
        cpu = self.cpu if self.isa >= Isa.AVX512 or self.isa is native_isa() else ""
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu, flags, 3, reloc="pic", jit=True)


def native_isa() -> Isa:
    """Return the highest level of this machine."""
    present = _present()
    level = Isa.PORTABLE
    for candidate in (Isa.AVX2, Isa.AVX512, Isa.AMX):
        if not _NEEDS[candidate] <= present:
            break
        if candidate is Isa.AMX and not _may_use_tiles():
            break
        level = candidate
    return level


def detect(limit: Isa | None = None) -> Host:
    """Describe this machine.

    Args:
        limit: highest level to use; by default ``NPU_NATIVE_ISA``, else no limit.

    Raises:
        EngineError: the variable is not a level, or this machine lacks the level.
    """
    if limit is None:
        limit = _limit_from_environment()
    native = native_isa()
    level = native if limit is None else limit
    if level > native:
        raise EngineError(f"this machine has no {level.name}; use {native.name} or a lower level")
    features = _present()
    if level < native:
        features = frozenset(name for name in features if _allowed(name, level))
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), level, features)


def _limit_from_environment() -> Isa | None:
    name = os.environ.get(ISA_VARIABLE, "").upper()
    if not name:
        return None
    if name not in Isa.__members__:
        known = ", ".join(isa.name.lower() for isa in Isa)
        raise EngineError(f"{ISA_VARIABLE}={name.lower()}: unknown level; use one of {known}")
    return Isa[name]


def _allowed(feature: str, level: Isa) -> bool:
    if level is Isa.AVX512:
        return not feature.startswith("amx")
    if not feature.startswith(_VECTOR_PREFIXES):
        return True
    return level is Isa.AVX2 and feature in _NEEDS[Isa.AVX2] | {"avx"}


@functools.cache
def _present() -> frozenset[str]:
    found = llvm.get_host_cpu_features()
    return frozenset(name for name, present in found.items() if present)


_ARCH_PRCTL = 158
_REQUEST_PERMISSION = 0x1023
_TILE_DATA = 18


@functools.cache
def _may_use_tiles() -> bool:
    """Request tile registers from Linux; return whether the process may use them.

    Tile data makes every thread's saved registers 8 KiB larger; so Linux grants it only on request,
    by arch_prctl(ARCH_REQ_XCOMP_PERM), see Documentation/arch/x86/xstate.rst.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0
