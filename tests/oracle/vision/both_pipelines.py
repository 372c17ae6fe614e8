"""Actions of VLMPipeline that give the same in both packages; skipped without openvino_genai."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openvino as ov
import pytest

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

OWN_TAG = "<|vision_start|><|image_pad|><|vision_end|>"


def check_alike(pipes: tuple[Any, Any], act: Callable[[Any, Any, Any], Any]) -> Any:
    """Check that an action gives the same in both packages; tensors are each package's own."""
    found = act(ours, pipes[0], ours.Tensor)
    assert found == act(theirs, pipes[1], ov.Tensor)
    return found
