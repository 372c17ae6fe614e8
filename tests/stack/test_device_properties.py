"""DEVICE_PROPERTIES: each pipeline takes those of its device, and leaves those of others out.

tests/oracle/test_live_property_values.py shows that the real OpenVINO does the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import golden_folders

from genai_layer import (
    ArgumentError,
    ASRPipeline,
    ContinuousBatchingPipeline,
    EmbeddingPipeline,
    LLMPipeline,
    PropertyError,
    SchedulerConfig,
    TextEmbeddingPipeline,
    TextRerankPipeline,
    Tokenizer,
    VLMPipeline,
    WhisperPipeline,
    draft_model,
)
from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import write_toy_folder

vision_folder, folders = golden_folders.vision_folder, golden_folders.pipeline_folders

Make = Callable[[Any, Any, dict[str, Any]], object]


def batched(folders: Any, core: Any, given: dict[str, Any]) -> object:
    return ContinuousBatchingPipeline(folders["toy"], SchedulerConfig(), "NPU", given, core=core)


def batched_with_tokenizer(folders: Any, core: Any, given: dict[str, Any]) -> object:
    tokenizer = Tokenizer(folders["toy"])
    return ContinuousBatchingPipeline(
        folders["toy"], tokenizer, SchedulerConfig(), "NPU", core=core, **given
    )


def drafted(folders: Any, core: Any, given: dict[str, Any]) -> object:
    draft = draft_model(folders["toy"], "NPU", core=core, **given)
    size = Tokenizer(folders["toy"]).vocabulary_size
    plain = MemoryCore(np.zeros((size, size), np.float32))
    return LLMPipeline(folders["toy"], "NPU", core=plain, draft_model=draft)


PIPELINES: dict[str, Make] = {
    "LLMPipeline": lambda f, core, given: LLMPipeline(f["toy"], "NPU", core=core, **given),
    "draft_model": drafted,
    "ContinuousBatchingPipeline": batched,
    "ContinuousBatchingPipeline with a tokenizer": batched_with_tokenizer,
    "VLMPipeline": lambda f, core, given: VLMPipeline(f["vision"], "NPU", core=core, **given),
    "WhisperPipeline": lambda f, core, given: WhisperPipeline(
        f["speech"], "NPU", core=core, **given
    ),
    "ASRPipeline": lambda f, core, given: ASRPipeline(f["speech"], "NPU", core=core, **given),
    "TextEmbeddingPipeline": lambda f, core, given: TextEmbeddingPipeline(
        f["texts"], "NPU", core=core, **given
    ),
    "TextRerankPipeline": lambda f, core, given: TextRerankPipeline(
        f["texts"], "NPU", core=core, **given
    ),
    "EmbeddingPipeline": lambda f, core, given: EmbeddingPipeline(
        f["texts"], "NPU", core=core, **given
    ),
}


class Notes:
    """Runtime that notes the properties of the first model."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {}

    def read_model(self, model: str, weights: Any, /) -> Any:
        return model

    def compile_model(self, model: Any, device_name: str, config: Any, /) -> Any:
        self.config = dict(config)
        raise RuntimeError("noted")


def noted(make: Make, folders: Any, given: dict[str, Any]) -> dict[str, Any]:
    core = Notes()
    with pytest.raises(RuntimeError, match="noted"):
        make(folders, core, given)
    return core.config


@pytest.fixture(scope="module")
def all_folders(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return folders | {"toy": write_toy_folder(tmp_path_factory.mktemp("toy"))}


@pytest.mark.parametrize("name", PIPELINES)
def test_properties_of_the_device_are_the_pipelines(all_folders: Any, name: str) -> None:
    by_device = {"NPU": {"FOO": 2, "MAX_PROMPT_LEN": 64}, "CPU": {"FOO": 3, "low": None}}
    given = {"FOO": 1, "BAR": "x", "DEVICE_PROPERTIES": by_device}
    plain = {"FOO": 2, "BAR": "x", "MAX_PROMPT_LEN": 64}
    found = noted(PIPELINES[name], all_folders, given)
    assert found == noted(PIPELINES[name], all_folders, plain)
    assert found["FOO"] == 2
    assert "DEVICE_PROPERTIES" not in found


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("wrong", ["x", [1], {"NPU": "x"}, {"NPU": None}, {1: {}}])
def test_another_container_is_rejected(all_folders: Any, name: str, wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=r"DEVICE_PROPERTIES = .*: pass a dict of str to dict"):
        PIPELINES[name](all_folders, Notes(), {"DEVICE_PROPERTIES": wrong})


@pytest.mark.parametrize("name", PIPELINES)
def test_names_and_values_are_checked_as_others(all_folders: Any, name: str) -> None:
    for wrong in ({"low": 1}, {"FOO": None}):
        with pytest.raises(PropertyError, match=min(wrong)):
            PIPELINES[name](all_folders, Notes(), {"DEVICE_PROPERTIES": {"NPU": wrong}})


def test_a_tokenizer_ignores_them(all_folders: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        Tokenizer(all_folders["toy"], {"DEVICE_PROPERTIES": {"CPU": {"FOO": 1}}})
    Tokenizer(all_folders["toy"], DEVICE_PROPERTIES={"CPU": {"FOO": 1}})
