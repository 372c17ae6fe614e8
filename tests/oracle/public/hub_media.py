"""Tiny random models of speech and images, and data sets, for ``make_hub.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from hub_models import ROOT, module, scaled, tokenizer

speech = module(ROOT / "tests" / "goldens" / "whisper" / "folder.py")

MARKS = [f"<|{mark}|>" for mark in ("vision_start", "vision_end", "image_pad", "video_pad")]
WHISPERS = {"openai/whisper-tiny": True, "distil-whisper/distil-small.en": False}
"""Names on the hub, and True for models of several languages."""
VISION = {
    "optimum-intel-internal-testing/tiny-random-qwen2vl": "Qwen2VL",
    "optimum-intel-internal-testing/tiny-random-qwen2.5-vl": "Qwen2_5_VL",
    "optimum-intel-internal-testing/tiny-random-qwen3-vl-embedding": "Qwen3VL",
}
"""Architectures by name on the hub."""
SPEECHES = {
    "hf-internal-testing/librispeech_asr_dummy": ("clean", "validation", 30, 4.0),
    "distil-whisper/meanwhile": ("default", "test", 10, 33.0),
}
"""Configuration, split, number of recordings and their seconds, by name on the hub."""
PICTURES = ("cat.jpg", "car.jpg", "handwritten.png")


def write_whisper(folder: Path, multilingual: bool) -> None:
    """Write a tiny Whisper with the tokenizer of ``tests/goldens/whisper``."""
    import torch
    import transformers as t

    torch.manual_seed(7)
    config = t.WhisperConfig(
        vocab_size=300,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=80,
        max_source_positions=1500,
        init_std=0.2,
        pad_token_id=256,
        bos_token_id=256,
        eos_token_id=256,
        decoder_start_token_id=257,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    t.WhisperForConditionalGeneration(config).save_pretrained(folder)
    described: Any = speech.tokenizer()
    tokens = t.WhisperTokenizer(
        vocab=described["model"]["vocab"],
        merges=[tuple(each.split()) for each in described["model"]["merges"]],
        **dict.fromkeys(("unk_token", "bos_token", "eos_token"), speech.SPECIAL[0]),
    )
    tokens.add_special_tokens({"additional_special_tokens": list(speech.SPECIAL)})
    tokens.add_tokens([f"<|{step * 0.02:.2f}|>" for step in range(speech.TIMES)])
    features = t.WhisperFeatureExtractor()
    t.WhisperProcessor(features, tokens).save_pretrained(folder)
    generation = {**speech.GENERATION, "is_multilingual": multilingual}
    if not multilingual:
        del generation["lang_to_id"], generation["task_to_id"]
    (folder / "generation_config.json").write_text(json.dumps(generation))


def write_vision(folder: Path, architecture: str) -> None:
    """Write a tiny model of images and texts."""
    import torch
    import transformers as t

    torch.manual_seed(7)
    tokens = tokenizer("qwen2")
    tokens.add_special_tokens({"additional_special_tokens": MARKS})
    names = ("vision_start", "vision_end", "image", "video")
    ids = zip(names, tokens.convert_tokens_to_ids(MARKS), strict=True)
    text = {
        "vocab_size": len(tokens),
        "hidden_size": 96,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        "eos_token_id": tokens.eos_token_id,
        "pad_token_id": tokens.pad_token_id,
    }
    eyes: dict[str, Any] = {"depth": 1, "num_heads": 2}
    suffix = "ForConditionalGeneration"
    if architecture == "Qwen3VL":
        # An embedding model: without an LM head.
        suffix = "Model"
        text |= {"head_dim": 16, "rope_scaling": text["rope_scaling"] | {"rope_type": "default"}}
        eyes |= {"hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 96}
        eyes |= {"deepstack_visual_indexes": [0], "num_position_embeddings": 64, "patch_size": 16}
    elif architecture == "Qwen2VL":
        eyes |= {"embed_dim": 32, "hidden_size": 96}
    else:
        eyes |= {"hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 96}
        eyes |= {"fullatt_block_indexes": [0]}
    config = getattr(t, f"{architecture}Config")(
        text_config=text, vision_config=eyes, **{f"{name}_token_id": number for name, number in ids}
    )
    model = getattr(t, f"{architecture}{suffix}")(config)
    scaled(model, 2.5).save_pretrained(folder)
    images, videos = t.Qwen2VLImageProcessor(), t.Qwen2VLVideoProcessor()
    if architecture == "Qwen3VL":
        images, videos = t.Qwen2VLImageProcessor(patch_size=16), t.Qwen3VLVideoProcessor()
    kind = getattr(t, f"{architecture}Processor")
    kind(images, tokens, videos, chat_template=tokens.chat_template).save_pretrained(folder)


def write_speeches(folder: Path, config: str, split: str, count: int, seconds: float) -> None:
    """Write a data set of synthetic speech."""
    import soundfile

    (folder / "data").mkdir()
    for number in range(count):
        path = folder / "data" / f"{number:02}.wav"
        soundfile.write(path, speech.speech(seconds, number), 16000)
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: {config}\n  data_files:\n"
        f"  - split: {split}\n    path: data/*.wav\n---\n"
    )


def write_pictures(folder: Path) -> None:
    """Write pictures in place of those that the tests download."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(PICTURES):
        coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
        Image.fromarray(coarse).resize((224, 168)).save(folder / name)
