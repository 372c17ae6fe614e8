"""The driver's cache of compiled graphs on disk, and the keys of its entries.

Source: docs/reference/level_zero.md#cache-of-compiled-graphs.
"""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from pathlib import Path

from driver_layer.abi.platforms import Platform
from driver_layer.support.file_cache import FileCache
from driver_layer.support.versions import package_version
from driver_layer.ze import graph_types as t
from driver_layer.ze.graph_compiler import GraphCompiler

FOLDER_VARIABLE = "ZE_INTEL_NPU_CACHE_DIR"
LIMIT_VARIABLE = "ZE_INTEL_NPU_CACHE_SIZE"

_DEFAULT_LIMIT = 4 << 30

_LOG = logging.getLogger(__name__)


@cache
def disk_cache() -> FileCache:
    """Return the cache of this process, which reads the environment at its first use."""
    return FileCache(_folder(), _limit(), ".graph")


def key_of(
    desc: t.ze_graph_desc_2_t, build_flags: str, compiler: GraphCompiler, platform: Platform
) -> str:
    """Return the key of a model: everything that its blob depends on.

    Args:
        desc: descriptor of the graph; its input hash, if any, stands for its input.
        build_flags: the build flags with those that the driver adds.
        compiler: the compiler.
        platform: the device.
    """
    parts: list[bytes | memoryview] = [
        text.encode()
        for text in (
            package_version("driver_layer"),
            compiler.identity,
            repr(platform),
            str(int(desc.format)),
            build_flags,
            str(int(desc.flags)),
            "input" if desc.pNext is None else f"hash {desc.pNext.hash}",
        )
    ]
    if desc.pNext is None:
        parts.append(memoryview(desc.pInput).cast("B"))
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()


def _folder() -> Path | None:
    """Return the folder that the environment chooses; None disables the cache."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "ze_intel_npu_cache"
    except RuntimeError:  # the user has no home folder
        return None


def _limit() -> int:
    """Return the limit in bytes; a text that is not a number disables the cache."""
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return _DEFAULT_LIMIT
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    _LOG.warning("%s=%s: not a number of bytes; graphs are not cached", LIMIT_VARIABLE, text[:40])
    return 0
