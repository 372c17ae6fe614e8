"""Layout of the models' folder, and commands that create missing models.

DIR/NAME                         Hugging Face folder
DIR/ir/NAME-{fp16,int8,int4}     exported by optimum-cli
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from peer import Peer

NAMES = ("llama-8m", "llama-135m", "llama-1b")

INT4_GROUPS = {"llama-8m": 64, "llama-135m": 64, "llama-1b": 128}
"""Weights per quantization group; the smaller models' widths are not multiples of 128."""

_FIRST_ID = 10
"""First id that is not special."""


def is_there(peer: Peer, models: Path, model: str) -> bool:
    """Return whether a peer's model exists."""
    source = peer.source(models, model)
    if source.suffix == ".gguf":
        return source.is_file()
    return any((source / name).is_file() for name in ("openvino_model.bin", "model.safetensors"))


def how_to_make(peer: Peer, models: Path, model: str) -> str:
    """Return the command that creates a missing model."""
    part = {"llama.cpp": "gguf", "transformers": "folder"}.get(peer.kind, "ir")
    return f"python benchmarks/make_models.py {models} {model} --only {part}"


def export_command(peer: Peer, models: Path, model: str) -> list[str]:
    """Return the command line of OpenVINO's exporter for an IR."""
    command = ["optimum-cli", "export", "openvino", "-m", str(models / model)]
    command += ["--task", "text-generation-with-past", "--weight-format", peer.precision]
    if peer.precision == "int4":
        command += ["--sym", "--ratio", "1.0", "--group-size", str(INT4_GROUPS[model])]
    return [*command, str(peer.source(models, model))]


def draw_prompts(folder: Path, tokens: int, count: int, seed: int) -> list[list[int]]:
    """Draw random prompts, all different, so that prefix caches cannot replace the prefill.

    Args:
        folder: the Hugging Face folder; ids are in its tokenizer's vocabulary.
        tokens: length of the prompts.
        count: number of prompts.
        seed: equal seeds draw equal prompts.
    """
    config = json.loads((folder / "config.json").read_text())
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    end = min(config["vocab_size"], max(vocabulary.values()) + 1)
    draw = random.Random(seed)
    return [[draw.randrange(_FIRST_ID, end) for _ in range(tokens)] for _ in range(count)]
