"""Golden files tests/goldens/vision: the four IRs of a tiny Qwen2-VL, by the real exporter.

As in ``make_export_goldens.py``, the XML is stored, and a recipe of the ``.bin`` that draws weights
again. ``texts.json`` has texts of openvino_genai's pipeline for the restored IRs, in f32, and
``tokenizer.json.xz`` the tokenizer's models, which that pipeline reads.

Needs PyTorch, transformers, optimum-intel and openvino_genai, which only such scripts need:

    pip install torch "transformers==4.57.6" "optimum-intel[openvino]==2.2.0"
    pip install openvino-genai==2026.4.1
    python tools/make_vision_goldens.py        # from the checkout, about a minute
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from golden_ir import EXACT, GOLDENS, keep, keep_tokenizer, load_module, restore

TARGET = GOLDENS / "vision"
tools = load_module(TARGET / "folder.py")
"""Module that writes a complete folder, shared with the tests."""

TEXT = {
    "vocab_size": tools.LETTERS + len(tools.SPECIAL),
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
}

GAIN = 2.5
"""Factor of random matrices, so that texts depend on all parts of a prompt."""

CASES: dict[str, tuple[str, list[tuple[int, int]]]] = {
    "text": ("What is it?", []),
    "image": ("What is it?", [(60, 90)]),
    "images": ("Compare them.", [(60, 90), (200, 100), (33, 250)]),
    "small": ("What is it?", [(5, 9)]),
    "large": ("What is it?", [(300, 411)]),
    "tags": ("A <ov_genai_image_1> and b <ov_genai_image_0>", [(60, 90), (120, 60)]),
}
"""Prompts, with sizes of their images; the real VLMPipeline's texts for them are stored."""

VIDEOS: dict[str, tuple[str, list[tuple[int, int, int]]]] = {
    "video": ("What happens?", [(5, 60, 90)]),
    "videos": ("Compare <ov_genai_video_1> and <ov_genai_video_0>", [(2, 60, 90), (4, 90, 60)]),
}
"""Prompts, with frames and sizes of their videos."""


def export(target: Path) -> None:
    """Write the IRs of a model with random weights."""
    import torch
    import transformers as t
    from optimum.exporters.openvino.convert import export_from_model
    from optimum.intel.openvino.configuration import OVConfig

    torch.manual_seed(7)
    marks = {
        "image_token_id": tools.IDS["<|image_pad|>"],
        "video_token_id": tools.IDS["<|video_pad|>"],
        "vision_start_token_id": tools.IDS["<|vision_start|>"],
        "vision_end_token_id": tools.IDS["<|vision_end|>"],
    }
    config = t.Qwen2VLConfig(text_config=TEXT, vision_config=tools.VISION, **marks)
    model = t.Qwen2VLForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(GAIN if weights.dim() > 1 else 1)
    model.generation_config = t.GenerationConfig()
    export_from_model(
        model, target, task="image-text-to-text", stateful=True, ov_config=OVConfig(dtype="fp32")
    )


def texts(folder: Path) -> dict[str, Any]:
    """Return the real pipeline's texts."""
    import openvino as ov
    import openvino_genai

    pipeline = openvino_genai.VLMPipeline(folder, "CPU", **EXACT)
    found: dict[str, Any] = {}
    for name, (prompt, sizes) in CASES.items():
        images = [ov.Tensor(tools.picture(*size, seed)) for seed, size in enumerate(sizes)]
        said = pipeline.generate(prompt, images=images, max_new_tokens=16)
        found[name] = {"prompt": prompt, "sizes": sizes, "text": said.texts[0]}
    for name, (prompt, films) in VIDEOS.items():
        videos = [ov.Tensor(tools.film(*film, seed)) for seed, film in enumerate(films)]
        said = pipeline.generate(prompt, videos=videos, max_new_tokens=16)
        found[name] = {"prompt": prompt, "films": films, "text": said.texts[0]}
    return found


def main() -> None:
    """Write all golden files."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        export(work / "ir")
        for part in tools.PARTS:
            keep(work / "ir" / f"openvino_{part}_model.xml", TARGET, part, work)
        folder = tools.write(restore.restore, work / "whole")
        keep_tokenizer(folder, TARGET)
        said = texts(folder)
        (TARGET / "texts.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
