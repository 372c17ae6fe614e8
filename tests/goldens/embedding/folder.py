"""Complete folder of the tiny Qwen3-VL embedding model: IRs, a tokenizer, and configurations.

The tokenizer is that of ``tests/goldens/vision``, and ends texts by ``<|endoftext|>``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = (
    *("language", "text_embeddings", "vision_embeddings", "vision_embeddings_merger"),
    "vision_embeddings_pos",
)
END = "<|endoftext|>"
VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": 96,
    "deepstack_visual_indexes": [0, 1],
    "num_position_embeddings": 25,
    "patch_size": 16,
}
_NORMAL = {"image_mean": [0.5, 0.4, 0.6], "image_std": [0.5, 0.6, 0.5]}
_PATCHES = {"patch_size": 16, "merge_size": 2, "temporal_patch_size": 2}
PROCESSOR = {
    "image_processor": {
        **_PATCHES,
        **_NORMAL,
        "size": {"shortest_edge": 4 * 1024, "longest_edge": 36 * 1024},
    },
    "video_processor": {
        **_PATCHES,
        "image_mean": [0.0, 0.0, 0.0],
        "image_std": [1.0, 1.0, 1.0],
        "size": {"shortest_edge": 6 * 1024, "longest_edge": 20 * 1024},
        "do_sample_frames": True,
        "fps": 2,
        "min_frames": 4,
        "max_frames": 768,
    },
}


def tokenizer(vision: Any) -> dict[str, Any]:
    """Return a ``tokenizer.json``; ``vision`` is ``tests/goldens/vision/folder.py``."""
    end = {"id": END, "ids": [vision.IDS[END]], "tokens": [END]}
    text, last = (
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": END, "type_id": 0}},
    )
    pair = {"Sequence": {"id": "B", "type_id": 0}}
    processor = {
        "type": "TemplateProcessing",
        "single": [text, last],
        "pair": [text, pair, last],
        "special_tokens": {END: end},
    }
    return {**vision.tokenizer(), "post_processor": processor}


def write(restore: Callable[[Path, str, Path], Path], vision: Any, folder: Path) -> Path:
    """Write a folder with IRs that ``restore.py`` restores; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        xml = restore(Path(__file__).parent, part, folder / part)
        for suffix in (".xml", ".bin"):
            shutil.move(xml.with_suffix(suffix), folder / f"openvino_{part}_model{suffix}")
    ids = {"eos_token_id": vision.IDS["<|im_end|>"], "pad_token_id": vision.IDS[END]}
    settings = {"eos_token": "<|im_end|>", "pad_token": END, "chat_template": vision.TEMPLATE}
    for name, content in (
        ("config", {"model_type": "qwen3_vl", "vision_config": VISION, **ids}),
        ("processor_config", PROCESSOR),
        ("tokenizer", tokenizer(vision)),
        ("tokenizer_config", {"tokenizer_class": "PreTrainedTokenizerFast", **settings}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def arguments(
    case: dict[str, Any], vision: Any, tensor: Callable[[Any], Any], metadata: Callable[[], Any]
) -> dict[str, Any]:
    """Return the arguments of ``embed`` for a case of ``embeddings.json``.

    Args:
        case: text and embedding_prompt; sizes of images, frames and sizes of videos; metadata, a
            pair of fps and frames_indices for each video.
        vision: ``tests/goldens/vision/folder.py``.
        tensor: the package's class.
        metadata: the package's class.
    """
    given: dict[str, Any] = {n: case[n] for n in ("text", "embedding_prompt") if n in case}
    draws = {"images": vision.picture, "videos": vision.film}
    for name, draw in draws.items():
        sizes = case.get(name, [])
        given[name] = [tensor(draw(*size, seed)) for seed, size in enumerate(sizes)]
    given["videos_metadata"] = []
    for fps, frames in case.get("metadata", []):
        facts = metadata()
        facts.fps, facts.frames_indices = fps, frames
        given["videos_metadata"].append(facts)
    return given
