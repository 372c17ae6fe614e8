"""Golden files tests/goldens/embedding: the five IRs of a tiny Qwen3-VL, by the real exporter.

As in ``make_export_goldens.py``, the XML is stored, and a recipe of the ``.bin`` that draws weights
again. ``embeddings.json`` has the first numbers of openvino_genai's embeddings by the restored IRs,
in f32.

The features of images are added in the form of optimum-intel 2.0 and 2.1: openvino_genai cannot
pass a text without images to a model of 2.2 (docs/reference/genai.md#embeddings-of-images).

Needs PyTorch, transformers, optimum-intel and openvino_genai, which only such scripts need:

    pip install torch "transformers==5.0.0" "optimum-intel[openvino]==2.2.0"
    pip install openvino-genai==2026.4.1
    python tools/make_embedding_goldens.py        # from the checkout, about a minute
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from golden_ir import EXACT, GOLDENS, keep, keep_tokenizer, load_module, restore

TARGET = GOLDENS / "embedding"
tools = load_module(TARGET / "folder.py")
"""Module that writes a complete folder, shared with the tests."""
vision = load_module(GOLDENS / "vision" / "folder.py")
made = load_module(Path(__file__).with_name("make_vision_goldens.py"))

TEXT = {
    "vocab_size": vision.LETTERS + len(vision.SPECIAL),
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 500000.0,
        "mrope_section": [4, 2, 2],
        "mrope_interleaved": True,
    },
}

CASES: dict[str, dict[str, Any]] = {
    "text": {"text": "What is it?"},
    "prompt": {"text": "What is it?", "embedding_prompt": "Represent the input."},
    "image": {"text": "", "images": [(60, 90)]},
    "images": {
        "text": "b <ov_genai_image_1> a <ov_genai_image_0>",
        "images": [(60, 90), (200, 100)],
    },
    "video": {"text": "What happens?", "videos": [(5, 60, 90)], "metadata": [(4.0, [0, 1, 3])]},
    "sampled": {"text": "", "videos": [(6, 60, 90)]},
    "both": {
        "text": "a <ov_genai_video_0> b <ov_genai_image_0>",
        "images": [(60, 90)],
        "videos": [(4, 60, 90)],
    },
}
"""Texts, with sizes of images, frames and sizes of videos, and fps and frames to take."""
KEPT = 12
"""Stored numbers of an embedding."""


def export(target: Path) -> None:
    """Write the IRs of a model with random weights."""
    import torch
    import transformers as t
    from optimum.exporters.openvino import model_patcher
    from optimum.exporters.openvino.convert import export_from_model
    from optimum.intel.openvino.configuration import OVConfig

    def add(self: Any, hidden: Any, marks: Any, features: Any) -> Any:
        hidden[marks, :] = hidden[marks, :].clone() + features
        return hidden

    model_patcher._deepstack_process_patched = add
    torch.manual_seed(7)
    marks = {
        "image_token_id": vision.IDS["<|image_pad|>"],
        "video_token_id": vision.IDS["<|video_pad|>"],
        "vision_start_token_id": vision.IDS["<|vision_start|>"],
        "vision_end_token_id": vision.IDS["<|vision_end|>"],
    }
    config = t.Qwen3VLConfig(text_config=TEXT, vision_config=tools.VISION, **marks)
    model = t.Qwen3VLModel(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(made.GAIN if weights.dim() > 1 else 1)
    export_from_model(
        model, target, task="feature-extraction", stateful=True, ov_config=OVConfig(dtype="fp32")
    )


def embeddings(folder: Path) -> dict[str, Any]:
    """Return the cases with the real pipeline's embeddings."""
    import openvino as ov
    import openvino_genai

    pipeline = openvino_genai.EmbeddingPipeline(folder, "CPU", **EXACT)
    found: dict[str, Any] = {}
    for name, case in CASES.items():
        given = tools.arguments(case, vision, ov.Tensor, openvino_genai.VideoMetadata)
        numbers = pipeline.embed(**given).embeddings.data[0, :KEPT]
        found[name] = {**case, "embedding": [round(float(each), 5) for each in numbers]}
    return found


def main() -> None:
    """Write all golden files."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        export(work / "ir")
        for part in tools.PARTS:
            keep(work / "ir" / f"openvino_{part}_model.xml", TARGET, part, work)
        folder = tools.write(restore.restore, vision, work / "whole")
        keep_tokenizer(folder, TARGET)
        found = embeddings(folder)
        (TARGET / "embeddings.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
