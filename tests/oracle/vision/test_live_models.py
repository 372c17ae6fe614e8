"""Models of VLMPipeline, with adapters and in memory, compared to the real openvino_genai."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_npuw import EXACT
from tests.oracle.vision.both_pipelines import ours, theirs

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"


@pytest.mark.parametrize("device", ["CPU", "NPU"])
def test_adapters_change_texts_alike(
    folder: Path, tools: Any, load_module: Callable[[Path], Any], tmp_path: Path, device: str
) -> None:
    files = load_module(GOLDENS / "adapter_files.py")
    layer = "model.language_model.layers.0.self_attn.q_proj"
    tensors = {
        f"{files.PREFIX}{name}.lora_{letter}.weight": values
        for name, pair in files.draw({layer: (96, 96)}, 4, 1, scale=6).items()
        for letter, values in zip("AB", pair, strict=True)
    }
    path = files.write_tensors(tmp_path / "adapter.safetensors", tensors)

    def texts(package: Any, tensor: Any, device: str, **exact: Any) -> list[str]:
        adapters = package.AdapterConfig(package.Adapter(path), 1.0)
        pipe = package.VLMPipeline(folder, device, adapters=adapters, **exact)
        given = {"image": tensor(tools.picture(60, 90)), "max_new_tokens": 9}
        calls = ({}, {"adapters": package.AdapterConfig()})
        return [pipe.generate("What?", **given, **call).texts[0] for call in calls]

    found = texts(ours, ours.Tensor, device, INFERENCE_PRECISION_HINT="f32")
    assert found == texts(theirs, ov.Tensor, "CPU", **EXACT)
    assert found[0] != found[1]


def decrypted(folder: Path, name: str) -> tuple[str, ov.Tensor]:
    """Return the text and the weights of an IR."""
    weights = np.fromfile(folder / f"{name}.bin", np.uint8)
    return (folder / f"{name}.xml").read_text(), ov.Tensor(weights)


@pytest.mark.parametrize("device", ["CPU", "NPU"])
def test_models_in_memory_give_the_same_texts(folder: Path, tools: Any, device: str) -> None:
    models = {part: decrypted(folder, f"openvino_{part}_model") for part in tools.PARTS}

    def text(package: Any, device: str, **exact: Any) -> str:
        config = package.GenerationConfig()
        config.max_new_tokens = 9
        given = models, package.Tokenizer(folder), folder, device
        pipe = package.VLMPipeline(*given, generation_config=config, **exact)
        assert pipe.get_generation_config().eos_token_id == tools.IDS["<|im_end|>"]
        return pipe.generate("What?", images=[ov.Tensor(tools.picture(60, 90))]).texts[0]

    found = text(ours, device, INFERENCE_PRECISION_HINT="f32")
    assert found == text(theirs, "CPU", **EXACT)
