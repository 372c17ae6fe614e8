"""A model whose files are decrypted in memory generates the texts of its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genai_layer import LLMPipeline, RuntimeFailure, Tensor, Tokenizer

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
OPTIONS = {"NPU": F32 | {"MAX_PROMPT_LEN": 64}, "CPU": F32}
QUESTION = "What is an NPU?"


@pytest.mark.parametrize("device", ["NPU", "CPU"])
def test_a_model_in_memory_generates_its_folders_text(
    demo: Path, demo_ir: Path, device: str
) -> None:
    weights = Tensor(np.fromfile(demo_ir.with_suffix(".bin"), np.uint8))
    pipe = LLMPipeline(demo_ir.read_text(), weights, Tokenizer(demo), device, **OPTIONS[device])
    expected = LLMPipeline(demo, "NPU", **OPTIONS["NPU"]).generate(QUESTION, max_new_tokens=20)
    assert pipe.generate(QUESTION, max_new_tokens=20) == expected
    with pytest.raises(RuntimeFailure):
        LLMPipeline("<net", weights, Tokenizer(demo), device)
