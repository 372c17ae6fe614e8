"""Description of this machine, by its processor's features and not only by its name."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_FEATURES = {
    "avx2": "AVX2",
    "fma": "FMA",
    "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX-512",
    "avx512_vnni": "AVX-512 VNNI",
    "avx512_bf16": "AVX-512 BF16",
    "avx512_fp16": "AVX-512 FP16",
    "amx_tile": "AMX",
    "amx_bf16": "AMX bf16",
    "amx_int8": "AMX int8",
    "asimd": "NEON",
    "asimddp": "NEON dot product",
    "i8mm": "NEON i8mm",
    "bf16": "NEON bf16",
    "sve": "SVE",
}


def describe() -> list[str]:
    """Return lines for the report."""
    fields = _processor()
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    known = [title for flag, title in _FEATURES.items() if flag in flags]
    lacks = [] if "amx_tile" in flags or "sse2" not in flags else ["no AMX"]
    name = fields.get("model name", platform.machine())
    return [
        f"{len(os.sched_getaffinity(0))} processors ({name}): {', '.join(known + lacks)}",
        f"{_memory_bytes() / 2**30:.0f} GiB of memory",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
    ]


def available_bytes() -> int:
    """Return the memory that programs can still take without swapping."""
    return _memory_field("MemAvailable")


def _memory_bytes() -> int:
    return _memory_field("MemTotal")


def _memory_field(name: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _processor() -> dict[str, str]:
    """Return the fields of the first processor."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            break
        fields[name.strip()] = value.strip()
    return fields
