"""Where the models lie, what of them is missing, and how to make it.

DIR/NAME                         Hugging Face folder
DIR/ir/NAME-{fp16,int8,int4}     what optimum-cli exports of it
DIR/gguf/NAME-{f16,q8_0,q4_0}.gguf
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from peer import Peer

NAMES = ("llama-8m", "llama-135m", "llama-1b")

INT4_GROUPS = {"llama-8m": 64, "llama-135m": 64, "llama-1b": 128}
"""Weights that share a scale; the width of the smaller models is no multiple of 128."""

_FIRST_ID = 10
"""Ids below are special."""


def is_there(peer: Peer, models: Path, model: str) -> bool:
    """Whether what a peer reads has been made."""
    source = peer.source(models, model)
    if source.suffix == ".gguf":
        return source.is_file()
    return any((source / name).is_file() for name in ("openvino_model.bin", "model.safetensors"))


def how_to_make(peer: Peer, models: Path, model: str) -> str:
    """The command that makes what is missing."""
    part = {"llama.cpp": "gguf", "transformers": "folder"}.get(peer.kind, "ir")
    return f"python benchmarks/make_models.py {models} {model} --only {part}"


def export_command(peer: Peer, models: Path, model: str) -> list[str]:
    """How OpenVINO's exporter is called for an IR."""
    command = ["optimum-cli", "export", "openvino", "-m", str(models / model)]
    command += ["--task", "text-generation-with-past", "--weight-format", peer.precision]
    if peer.precision == "int4":
        command += ["--sym", "--ratio", "1.0", "--group-size", str(INT4_GROUPS[model])]
    return [*command, str(peer.source(models, model))]


def draw_prompts(folder: Path, tokens: int, count: int, seed: int) -> list[list[int]]:
    """Random prompts, none like another: caches of prefixes must not answer for the prefill.

    Args:
        folder: the Hugging Face folder; ids are among those that its tokenizer knows.
        tokens: their length.
        count: how many.
        seed: the same seed gives the same prompts.
    """
    config = json.loads((folder / "config.json").read_text())
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    end = min(config["vocab_size"], max(vocabulary.values()) + 1)
    draw = random.Random(seed)
    return [[draw.randrange(_FIRST_ID, end) for _ in range(tokens)] for _ in range(count)]
