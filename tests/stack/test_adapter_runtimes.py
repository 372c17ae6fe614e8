"""LoRA part of the runtime interface: both runtimes pass the same checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import GOLDENS

from genai_layer.adapters.openvino import load_core
from genai_layer.testing.check_adapters import CHECKS, Setting, check_adapters
from npuw_layer import Core

TOKENS = [5, 9, 13, 7, 21, 30]
NPU = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_MAX_PROMPT_LEN": 64}
CPU = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> dict[str, str]:
    return {"CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def model(restored) -> Path:
    return restored(GOLDENS / "exported", "llama_fp16")


@pytest.mark.matrix
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_npuw_passes_each_check(model, cache, check) -> None:
    check(Setting(Core, model, "NPU", TOKENS, NPU | cache, 1e-4))


@pytest.mark.matrix
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_real_openvino_passes_each_check(model, check) -> None:
    check(Setting(load_core, model, "CPU", TOKENS, CPU, 1e-4))


class Deaf:
    """Runtime that accepts adapters and ignores them."""

    def __init__(self) -> None:
        self._core: Any = load_core()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def adaptable_matmuls(self, model, /):
        return self._core.adaptable_matmuls(model)

    def compile_adapted(self, model, device, config, adapters, mode, /):
        return self._core.compile_model(model, device, config)


def test_the_checks_find_a_runtime_that_ignores_adapters(model) -> None:
    with pytest.raises(AssertionError, match="states of"):
        check_adapters(Setting(Deaf, model, "CPU", TOKENS, CPU, 1e-4))
    only_modes = Setting(Deaf, model, "CPU", TOKENS, CPU, 1e-4)
    with pytest.raises(AssertionError, match="adapters: logits are equal"):
        CHECKS[-1](only_modes)
