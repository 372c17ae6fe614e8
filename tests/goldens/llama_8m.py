"""Folder of llama-8m: a real architecture with seeded random weights that are equal everywhere.

Eight million parameters are too many to commit, so they are drawn again: numpy's RandomState
returns equal numbers in every version. Norms are not all 1, and weights are large enough that
greedy decoding does not repeat one token forever.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 8192,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "torch_dtype": "float16",
}


def tensors() -> dict[str, np.ndarray]:
    """Draw the weights, f16, by their names in the checkpoint."""
    random = np.random.RandomState(7)
    hidden, inner, kv = 256, 704, 128

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * 0.06).astype(np.float16)

    def norm() -> np.ndarray:
        return (1 + 0.2 * random.standard_normal(hidden)).astype(np.float16)

    made = {"model.embed_tokens.weight": matrix(8192, hidden)}
    for layer in range(8):
        name = f"model.layers.{layer}"
        made |= {
            f"{name}.input_layernorm.weight": norm(),
            f"{name}.self_attn.q_proj.weight": matrix(hidden, hidden),
            f"{name}.self_attn.k_proj.weight": matrix(kv, hidden),
            f"{name}.self_attn.v_proj.weight": matrix(kv, hidden),
            f"{name}.self_attn.o_proj.weight": matrix(hidden, hidden),
            f"{name}.post_attention_layernorm.weight": norm(),
            f"{name}.mlp.gate_proj.weight": matrix(inner, hidden),
            f"{name}.mlp.up_proj.weight": matrix(inner, hidden),
            f"{name}.mlp.down_proj.weight": matrix(hidden, inner),
        }
    made["model.norm.weight"] = norm()
    return made


def write_safetensors(path: Path, weights: dict[str, np.ndarray]) -> None:
    """Write a safetensors file of f16 tensors."""
    header: dict[str, object] = {}
    offset = 0
    for name, values in weights.items():
        end = offset + values.nbytes
        header[name] = {
            "dtype": "F16",
            "shape": list(values.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in weights.values():
            file.write(values.tobytes())


def write_folder(folder: Path) -> Path:
    """Write the Hugging Face folder, without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1))
    write_safetensors(folder / "model.safetensors", tensors())
    return folder
