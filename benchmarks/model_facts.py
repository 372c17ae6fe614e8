"""Bytes to read and operations to compute, from a model's sizes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from peer import Peer


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Sizes of a Llama model."""

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    """True if the LM head is the embedding table."""

    @property
    def layer_weights(self) -> int:
        """Number of weights in the matrices of all layers."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.inner)

    @property
    def head_weights(self) -> int:
        """Number of weights in the LM head, and in the embedding table."""
        return self.vocabulary * self.hidden

    def prefill_flops(self, tokens: int) -> float:
        """Return the operations of a prompt: causal attention, one row of logits."""
        attention = 2 * tokens * tokens * self.layers * self.heads * self.head_dim
        return 2.0 * tokens * self.layer_weights + attention + 2.0 * self.head_weights

    def kv_values(self, tokens: int) -> int:
        """Return the elements of K and V that attention reads over ``tokens`` tokens."""
        return 2 * self.layers * self.kv_heads * self.head_dim * tokens


def read_facts(folder: Path) -> ModelFacts:
    """Read a Hugging Face folder's config.json."""
    config = json.loads((folder / "config.json").read_text())
    heads = config["num_attention_heads"]
    return ModelFacts(
        hidden=config["hidden_size"],
        inner=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        vocabulary=config["vocab_size"],
        tied=config["tie_word_embeddings"],
    )


_EMBEDDING_BYTES = {
    "f32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "f16": 2.0,
    "int8": 1.0,
    "int4": 1.0,  # the exporter keeps embedding and LM head in 8 bits
    "q8_0": 34 / 32,
    "q4_0": 18 / 32,
}


def weight_bytes(peer: Peer, source: Path, facts: ModelFacts) -> float:
    """Return the bytes of weights that a token reads: the file without a separate embedding table.

    One row of the embedding table is read; if the table is also the LM head, all of it.

    Args:
        peer: the peer, which has the precision.
        source: its file or folder.
        facts: the model's sizes.
    """
    per_value = _EMBEDDING_BYTES[peer.precision]
    unread = 0.0 if facts.tied else facts.head_weights * per_value
    if peer.kind == "transformers":  # it converts the file's weights
        tables = facts.head_weights if facts.tied else 2 * facts.head_weights
        return (facts.layer_weights + tables) * per_value - unread
    files = (source / "openvino_model.bin", source / "model.safetensors", source)
    return next(file for file in files if file.is_file()).stat().st_size - unread


def kv_element_bytes(peer: Peer) -> int:
    """Return the bytes of an element in the K and V caches, without scales.

    OpenVINO's default on the CPU is u8; ours is the activations' type unless KV_CACHE_PRECISION is
    set.
    """
    if peer.kind == "openvino":
        return {"f16": 2, "bf16": 2, "f32": 4}.get(peer.config.get("KV_CACHE_PRECISION", ""), 1)
    if peer.kind == "transformers":
        return 4 if peer.precision == "f32" else 2
    if peer.config.get("KV_CACHE_PRECISION") in ("i8", "f8e4m3", "f8e5m2"):
        return 1
    return 4 if peer.config.get("INFERENCE_PRECISION_HINT") == "f32" else 2
