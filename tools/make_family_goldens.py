"""Golden files tests/goldens/families* and rope.json: transformers' results for many families.

For each model, ``families.json`` has the config and the tensors' names and shapes in transformers,
and ``families_NAME.npz`` has logits and greedy tokens in f32. ``rope.json`` has the frequencies of
all supported kinds of scaled rotary embeddings. Attention is transformers' own ("eager"): its sdpa
attention leaves out Gemma 2's soft cap.

Needs PyTorch and transformers, which only such scripts need:

    pip install torch==2.13.0 "transformers==4.57.6"
    python tools/make_family_goldens.py            # from the checkout, half a minute
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

GOLDENS = Path(__file__).resolve().parent.parent / "tests" / "goldens"

SMALL = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LONGROPE = {
    "type": "longrope",
    "short_factor": [1.0, 1.1, 1.3, 1.6],
    "long_factor": [1.0, 2.0, 4.0, 8.0],
}
GEMMA = SMALL | {"head_dim": 12, "num_hidden_layers": 4, "query_pre_attn_scalar": 10}
NEOX = {k: v for k, v in SMALL.items() if k != "num_key_value_heads"} | {"head_dim": None}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama_biased": (
        "llama",
        "F16",
        SMALL | {"attention_bias": True, "mlp_bias": True, "rope_scaling": LLAMA3},
    ),
    "llama_linear": (
        "llama",
        "F32",
        SMALL | {"rope_scaling": {"rope_type": "linear", "factor": 2.5}, "head_dim": 10},
    ),
    "llama_yarn": ("llama", "F16", SMALL | {"rope_scaling": YARN, "tie_word_embeddings": True}),
    "mistral": ("mistral", "F16", SMALL | {"sliding_window": 16}),
    "qwen2": (
        "qwen2",
        "F16",
        SMALL
        | {"num_hidden_layers": 3, "use_sliding_window": True}
        | {"sliding_window": 16, "max_window_layers": 1},
    ),
    "qwen3": ("qwen3", "BF16", SMALL | {"head_dim": 12, "rope_theta": 1e6}),
    "phi3": ("phi3", "F16", SMALL | {"sliding_window": 16, "partial_rotary_factor": 0.5}),
    "phi3_longrope": (
        "phi3",
        "F16",
        SMALL | {"rope_scaling": LONGROPE, "original_max_position_embeddings": 128},
    ),
    "gemma2": (
        "gemma2",
        "BF16",
        GEMMA
        | {"sliding_window": 16, "tie_word_embeddings": False}
        | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 6.0},
    ),
    "gemma3": (
        "gemma3_text",
        "F16",
        GEMMA
        | {"sliding_window": 16, "sliding_window_pattern": 3, "rope_local_base_freq": 100.0}
        | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    ),
    "gpt2": (
        "gpt2",
        "F16",
        {"vocab_size": 96, "n_positions": 256, "n_embd": 32, "n_layer": 2, "n_head": 4}
        | {"bos_token_id": None, "eos_token_id": None},
    ),
    "granite": (
        "granite",
        "F16",
        SMALL
        | {"attention_multiplier": 0.5, "residual_multiplier": 0.7}
        | {"embedding_multiplier": 3.0, "logits_scaling": 2.5},
    ),
    "olmo2": ("olmo2", "F16", SMALL),
    "smollm3": (
        "smollm3",
        "F16",
        SMALL
        | {"num_hidden_layers": 3, "no_rope_layer_interval": 2, "tie_word_embeddings": False}
        | {"use_sliding_window": True, "sliding_window": 16},
    ),
    "starcoder2": ("starcoder2", "F16", SMALL | {"sliding_window": 16}),
    "gpt_neox": ("gpt_neox", "F16", NEOX | {"rotary_pct": 0.5}),
    "gpt_neox_serial": (
        "gpt_neox",
        "F16",
        NEOX | {"use_parallel_residual": False, "attention_bias": False, "rotary_emb_base": 500},
    ),
}
"""Type, element type of the stored weights, and config of each model."""


WIDE = {"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 4096}
LONG = {"long_factor": [2.0] * 32, "short_factor": [1 + i / 20 for i in range(32)]}
ROPES: list[dict[str, Any]] = [
    {},
    {"rope_theta": 1e6},
    {"rope_scaling": {"rope_type": "linear", "factor": 3.0}},
    {"rope_scaling": LLAMA3 | {"original_max_position_embeddings": 2048}},
    {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    {"rope_scaling": YARN | {"beta_fast": 16.0, "beta_slow": 2.0, "truncate": False}},
    {"rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.5}},
    {"rope_scaling": YARN | {"attention_factor": 0.9}, "rope_theta": 5e5},
    {"rope_scaling": {"rope_type": "longrope", "factor": 8.0} | LONG},
    {"rope_scaling": {"rope_type": "longrope", "attention_factor": 1.2, "factor": 8.0} | LONG},
    {
        "rope_scaling": {"rope_type": "longrope"} | LONG,
        "original_max_position_embeddings": 1024,
    },
]
"""Configurations of rotary embeddings of 64 channels."""


def load_families() -> Any:
    """Import the tests' module that writes the folders."""
    spec = importlib.util.spec_from_file_location("families", GOLDENS / "families.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe(kind: str, element: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the config and the stored tensors of a model."""
    config = transformers.AutoConfig.for_model(kind, **values)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with tempfile.TemporaryDirectory() as scratch:
        config.save_pretrained(scratch)
        written = json.loads((Path(scratch) / "config.json").read_text())
    written.pop("transformers_version")
    tied = set(model._tied_weights_keys or ()) if config.tie_word_embeddings else set()
    shapes = {name: list(t.shape) for name, t in model.state_dict().items() if name not in tied}
    return {"element": element, "config": written, "tensors": shapes}


def run(families: Any, folder: Path, config: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return logits of some tokens of each prompt, and greedy tokens after the middle one."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    found: dict[str, np.ndarray] = {}
    with torch.inference_mode():
        for length in families.LENGTHS:
            logits = model(torch.tensor(families.prompt(config, length))).logits[0].numpy()
            found[f"logits_{length}"] = logits[families.recorded_rows(length)]
        ids, mask, positions = map(torch.tensor, families.padded_prompt(config))
        logits = model(ids, attention_mask=mask, position_ids=positions).logits[0].numpy()
        rows = families.recorded_rows(families.PADDED)
        found["logits_padded"] = logits[rows[rows >= families.PADDING]]
        sequence = torch.tensor(families.prompt(config, 7))
        for _ in range(families.GREEDY_TOKENS):
            following = model(sequence).logits[:, -1].argmax(-1, keepdim=True)
            sequence = torch.cat([sequence, following], 1)
    found["greedy"] = sequence[0, 7:].numpy()
    return found


def rotary(values: dict[str, Any]) -> dict[str, Any]:
    """Return transformers' frequencies and factor for one of ``ROPES``."""
    config = transformers.LlamaConfig(**WIDE, **values)
    kind = (config.rope_scaling or {}).get("rope_type", "default")
    frequencies, factor = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS[kind](config, "cpu")
    return {"config": WIDE | values, "frequencies": frequencies.tolist(), "factor": factor}


def main() -> None:
    """Write all files, or those of the named models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    names = parser.parse_args().models
    families = load_families()
    known = families.descriptions() if families.DESCRIPTIONS.exists() else {}
    for name in names:
        known[name] = describe(*MODELS[name])
        with tempfile.TemporaryDirectory() as scratch:
            folder = families.write_folder(Path(scratch), known[name])
            found = run(families, folder, known[name]["config"])
        np.savez_compressed(GOLDENS / f"families_{name}.npz", **found)
        size = np.abs(found["logits_100"]).max()
        print(
            f"{name}: logits up to {size:.1f}, {len(set(found['greedy']))} distinct greedy tokens"
        )
    ropes = ",\n ".join(json.dumps(rotary(values)) for values in ROPES)
    (GOLDENS / "rope.json").write_text(f"[\n {ropes}\n]\n")
    lines = [f" {json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
    families.DESCRIPTIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
