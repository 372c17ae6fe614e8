"""Pipelines on the in-memory runtime, without a model or a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.golden_tokenizers import golden as golden

from genai_layer import LLMPipeline
from genai_layer.testing.toy import toy_pipeline, write_toy_folder

Speaks = Callable[..., LLMPipeline]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_toy_folder(tmp_path)


@pytest.fixture
def speaks(tmp_path: Path) -> Speaks:
    """Return a function that creates a pipeline with one answer to every prompt."""

    def make(answer: str | Sequence[int], device: str = "CPU", **properties: Any) -> LLMPipeline:
        return toy_pipeline(tmp_path, answer, device, **properties)

    return make
