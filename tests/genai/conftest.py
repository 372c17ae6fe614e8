"""Pipelines on the in-memory runtime: genai alone, without model or device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from genai_layer import LLMPipeline
from genai_layer.testing.toy import toy_pipeline, write_toy_folder

Speaks = Callable[..., LLMPipeline]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_toy_folder(tmp_path)


@pytest.fixture
def speaks(tmp_path: Path) -> Speaks:
    """Make a pipeline that answers every prompt with this."""

    def make(answer: str | Sequence[int], device: str = "CPU", **properties: Any) -> LLMPipeline:
        return toy_pipeline(tmp_path, answer, device, **properties)

    return make
