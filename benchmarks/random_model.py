"""Models of real sizes with random weights, as Hugging Face folders: speed ignores the values.

Weights are bf16 from a seeded generator, written tensor by tensor; an existing folder is kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

CONFIGS: dict[str, dict[str, Any]] = {
    "llama-8m": {"hidden": 256, "inner": 704, "layers": 8, "heads": 8, "kv": 4, "vocab": 8192},
    "llama-135m": {"hidden": 576, "inner": 1536, "layers": 30, "heads": 9, "kv": 3, "vocab": 49152},
    "llama-1b": {"hidden": 2048, "inner": 5632, "layers": 22, "heads": 32, "kv": 4, "vocab": 32000},
}
_TIED = ("llama-8m", "llama-135m")


def llama_config(name: str, layers: int | None = None) -> dict[str, Any]:
    """Return a model's config.json, with its number of layers or ``layers``."""
    sizes = CONFIGS[name]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": sizes["vocab"],
        "hidden_size": sizes["hidden"],
        "intermediate_size": sizes["inner"],
        "num_hidden_layers": layers or sizes["layers"],
        "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["kv"],
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": name in _TIED,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": 2,
    }


def tensor_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the checkpoint's tensors by name."""
    hidden, inner, vocab = (config[k] for k in ("hidden_size", "intermediate_size", "vocab_size"))
    kv = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        shapes |= {
            f"{name}.input_layernorm.weight": (hidden,),
            f"{name}.self_attn.q_proj.weight": (hidden, hidden),
            f"{name}.self_attn.k_proj.weight": (kv, hidden),
            f"{name}.self_attn.v_proj.weight": (kv, hidden),
            f"{name}.self_attn.o_proj.weight": (hidden, hidden),
            f"{name}.post_attention_layernorm.weight": (hidden,),
            f"{name}.mlp.gate_proj.weight": (inner, hidden),
            f"{name}.mlp.up_proj.weight": (inner, hidden),
            f"{name}.mlp.down_proj.weight": (hidden, inner),
        }
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def write_model(folder: Path, config: dict[str, Any]) -> Path:
    """Write a folder with random weights, unless it exists."""
    target = folder / "model.safetensors"
    if target.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    shapes = tensor_shapes(config)
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = np.random.default_rng(7)
    unfinished = target.with_suffix(".part")
    with unfinished.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in tqdm(shapes.values(), f"drawing {folder.name}", unit="tensor"):
            values = draw.standard_normal(shape, np.float32) * np.float32(0.03)
            values = np.ones(shape, np.float32) if len(shape) == 1 else values
            file.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    unfinished.replace(target)
    return folder
