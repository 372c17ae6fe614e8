"""Complete folder of the tiny Whisper: IRs, a tokenizer, and configurations for pipelines.

Texts are letters and pairs of letters, so all tokens are text; timestamps end at 0.70 seconds.
"""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import numpy as np

letters = runpy.run_path(str(Path(__file__).parents[1] / "letters.py"))

SPECIAL = (
    *("<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>"),
    *("<|transcribe|>", "<|startofprev|>", "<|notimestamps|>"),
)
TIMES = 36
GENERATION = {
    "begin_suppress_tokens": [0, 256],
    "suppress_tokens": [1, 2, 7, 257, 258, 259, 260, 261, 262],
    "decoder_start_token_id": 257,
    "eos_token_id": 256,
    "pad_token_id": 256,
    "is_multilingual": True,
    "lang_to_id": {"<|en|>": 258, "<|de|>": 259},
    "task_to_id": {"translate": 260, "transcribe": 261},
    "prev_sot_token_id": 262,
    "no_timestamps_token_id": 263,
    "max_initial_timestamp_index": 10,
    "alignment_heads": [[0, 1], [1, 0], [1, 1]],
    "max_length": 448,
}
FEATURES = {
    "chunk_length": 30,
    "feature_size": 16,
    "hop_length": 160,
    "n_fft": 400,
    "n_samples": 480000,
    "nb_max_frames": 3000,
    "sampling_rate": 16000,
}


def tokenizer() -> dict[str, object]:
    """Return a Hugging Face ``tokenizer.json``."""
    times = [f"<|{step * 0.02:.2f}|>" for step in range(TIMES)]
    return letters["tokenizer"]([letters["SPACE"]], SPECIAL, times)


def write(encoder: Path, decoder: Path, folder: Path) -> Path:
    """Write a folder with IRs from ``restore.py``; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, xml in (("encoder", encoder), ("decoder", decoder)):
        for suffix in (".xml", ".bin"):
            target = folder / f"openvino_{part}_model{suffix}"
            shutil.copy(xml.with_suffix(suffix), target)
    positions = {"max_source_positions": 1500, "max_target_positions": 448}
    config = {"model_type": "whisper", "vocab_size": 300, "eos_token_id": 256, **positions}
    settings = {"eos_token": SPECIAL[0], "tokenizer_class": "PreTrainedTokenizerFast"}
    for name, content in (
        ("config", config),
        ("generation_config", GENERATION),
        ("preprocessor_config", FEATURES),
        ("tokenizer", tokenizer()),
        ("tokenizer_config", settings),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def speech(seconds: float, seed: int = 5) -> np.ndarray:
    """Synthesise a voice-like signal: a moving tone with overtones, and noise."""
    random = np.random.RandomState(seed)
    time = np.arange(int(16000 * seconds)) / 16000
    pitch = 2 * np.pi * np.cumsum(140 + 60 * np.sin(3 * time)) / 16000
    voice = sum(np.sin(n * pitch) / n for n in range(1, 8)) * (0.5 + 0.5 * np.sin(9 * time))
    return (0.2 * voice + 0.01 * random.standard_normal(len(time))).astype(np.float32)
