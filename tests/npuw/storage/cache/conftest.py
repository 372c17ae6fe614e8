"""Starts of a tiny model with a cache folder, and programs that are plain bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.storage.cache.blob_cache import BlobCache
from npuw_layer.storage.cache.key import CacheKey
from npuw_layer.storage.container import STAGE, read_container
from npuw_layer.storage.manifest import EntryManifest

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}

Start = Callable[..., tuple[int, np.ndarray]]


class Counting(StaticCompiler):
    """Compiler that counts compilations."""

    def __init__(self) -> None:
        self.compiled = 0

    def compile(self, model: Any, config: Any) -> bytes:
        self.compiled += 1
        return super().compile(model, config)


@pytest.fixture
def start() -> Start:
    """Compile or load a model; return the number of compiled programs, and some logits."""

    def begin(folder: Path, cache: Path, **options: Any) -> tuple[int, np.ndarray]:
        compiler = Counting()
        config = SMALL | {"CACHE_DIR": str(cache)} | options
        compiled = Core(compiler=compiler).compile_model(folder, "NPU", config)
        assert compiled.get_property("LOADED_FROM_CACHE") == (compiler.compiled == 0)
        request = compiled.create_infer_request()
        ids = np.array([[5, 6, 7]])
        mask, positions = np.ones((1, 3), np.int64), np.arange(3)[None]
        found = request.infer({"input_ids": ids, "attention_mask": mask, "position_ids": positions})
        return compiler.compiled, found["logits"].copy()

    return begin


@pytest.fixture
def without_compiling() -> Callable[[], bytes]:
    """Return a function for a cache that must find the program."""

    def refuse() -> bytes:
        raise AssertionError("the cache has the program")

    return refuse


@pytest.fixture
def halves() -> Callable[[Path], BlobCache]:
    """Create caches of programs whose second half is weights."""

    def make(folder: Path) -> BlobCache:
        return BlobCache(folder, lambda program: [(len(program) // 2, len(program) // 2)])

    return make


@pytest.fixture
def key() -> CacheKey:
    return CacheKey({"model": "ab" * 32, "stage.tokens": "1", "npuw": "1", "device": "NPU 1"})


@pytest.fixture
def entry_named() -> Callable[[Path, str], Path]:
    """Find an entry by the kind of its stage, e.g. "generate"."""

    def find(folder: Path, name: str) -> Path:
        for path in folder.glob("*.blob"):
            entry = read_container(memoryview(path.read_bytes()), STAGE, EntryManifest)
            if entry.manifest.parts[0].name.startswith(name):
                return path
        raise AssertionError(name)

    return find
