"""Models in memory, compared to the real openvino_genai, live.

Skipped unless openvino_genai is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
QUESTION = "What is an NPU?"


def decrypted(folder: Path, name: str) -> tuple[str, ov.Tensor]:
    """Return the text and the weights of an IR."""
    weights = np.fromfile(folder / f"{name}.bin", np.uint8)
    return (folder / f"{name}.xml").read_text(), ov.Tensor(weights)


def made(package: Any, folder: Path, device: str, config: Any = None) -> Any:
    """Make a pipeline as the public sample encrypted_model_causal_lm.py does."""
    models = [decrypted(folder, f"openvino_{name}") for name in ("tokenizer", "detokenizer")]
    tokenizer = package.Tokenizer(*models[0], *models[1])
    model, weights = decrypted(folder, "openvino_model")
    return package.LLMPipeline(model, weights, tokenizer, device, config, **F32)


@pytest.mark.parametrize("device", ["NPU", "CPU"])
def test_texts_are_equal(genai_folder: Path, device: str) -> None:
    found, expected = made(ours, genai_folder, device), made(theirs, genai_folder, "CPU")
    assert found.generate(QUESTION, max_new_tokens=30) == expected.generate(
        QUESTION, max_new_tokens=30
    )
    one, other = (pipe.get_generation_config() for pipe in (found, expected))
    assert (one.eos_token_id, one.max_new_tokens) == (other.eos_token_id, other.max_new_tokens)
    for name in ("bos", "eos", "pad"):
        for get in (f"get_{name}_token", f"get_{name}_token_id"):
            values = [getattr(pipe.get_tokenizer(), get)() for pipe in (found, expected)]
            assert values[0] == values[1], get


def test_parameters_are_taken_equally(genai_folder: Path) -> None:
    for package, device in ((ours, "NPU"), (theirs, "CPU")):
        config = package.GenerationConfig()
        config.max_new_tokens = 5
        pipe = made(package, genai_folder, device, config)
        assert pipe.get_generation_config().max_new_tokens == 5


@pytest.mark.parametrize("package", [ours, theirs])
def test_a_model_in_memory_without_a_tokenizer_is_a_type_error(
    package: Any, genai_folder: Path
) -> None:
    model, weights = decrypted(genai_folder, "openvino_model")
    with pytest.raises(TypeError):
        package.LLMPipeline(model, weights, "CPU")
