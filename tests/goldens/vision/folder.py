"""Complete folder of the tiny Qwen2-VL: IRs, a tokenizer, and configurations for pipelines.

Texts are letters and pairs of letters, so all tokens but the special ones are text.
"""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

letters = runpy.run_path(str(Path(__file__).parents[1] / "letters.py"))

PARTS = ("language", "text_embeddings", "vision_embeddings", "vision_embeddings_merger")
LETTERS = letters["LETTERS"]
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
IDS = {token: LETTERS + place for place, token in enumerate(SPECIAL)}
VISION = {"depth": 2, "embed_dim": 64, "hidden_size": 96, "num_heads": 2, "mlp_ratio": 2}
PROCESSOR = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "max_pixels": 28 * 28 * 36,
    "min_pixels": 56 * 56,
    "merge_size": 2,
    "patch_size": 14,
    "temporal_patch_size": 2,
}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> dict[str, Any]:
    """Return a Hugging Face ``tokenizer.json``."""
    return letters["tokenizer"]([letters["SPACE"], letters["LINE"]], SPECIAL)


def write(restore: Callable[[Path, str, Path], Path], folder: Path) -> Path:
    """Write a folder with IRs that ``restore.py`` restores; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        xml = restore(Path(__file__).parent, part, folder / part)
        for suffix in (".xml", ".bin"):
            shutil.move(xml.with_suffix(suffix), folder / f"openvino_{part}_model{suffix}")
    end, pad = "<|im_end|>", "<|endoftext|>"
    ids = {"eos_token_id": IDS[end], "pad_token_id": IDS[pad], "bos_token_id": IDS[pad]}
    settings = {"eos_token": end, "pad_token": pad, "chat_template": TEMPLATE}
    for name, content in (
        ("config", {"model_type": "qwen2_vl", "vision_config": VISION, **ids}),
        ("generation_config", ids),
        ("preprocessor_config", PROCESSOR),
        ("tokenizer", tokenizer()),
        ("tokenizer_config", {"tokenizer_class": "PreTrainedTokenizerFast", **settings}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Draw an image u8 [height, width, 3]: waves of colours, and noise."""
    random = np.random.RandomState(seed)
    y, x = np.indices((height, width, 1))[:2]
    phases = random.uniform(0, 6, 3)
    waves = np.sin(y / 9 + phases) + np.cos(x / 7 - phases)
    noise = random.standard_normal((height, width, 3))
    return np.clip(128 + 50 * waves + 20 * noise, 0, 255).astype(np.uint8)


def film(frames: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Draw a video u8 [frames, height, width, 3] of different images."""
    return np.stack([picture(height, width, 20 * seed + frame) for frame in range(frames)])
