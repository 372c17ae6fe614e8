"""Configurations that ``make_config_goldens.py`` has transformers read: all families × all keys.

A case is a change of a family's small base: keys with other values; ``ABSENT`` removes a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ABSENT = "<absent>"

SIZES = {
    "vocab_size": 40,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
"""Keys of every base; the others are absent, so that the classes' defaults apply."""

GEMMA = SIZES | {"head_dim": 16}
NEOX = SIZES | {"num_key_value_heads": ABSENT, "num_attention_heads": 2}
GPT2 = {"vocab_size": 40, "n_embd": 64, "n_head": 4, "n_layer": 4, "n_positions": 64}

BASES: dict[str, dict[str, Any]] = {
    "llama": SIZES,
    "mistral": SIZES,
    "qwen2": SIZES,
    "qwen3": SIZES | {"head_dim": 16},
    "phi3": SIZES,
    "gemma2": GEMMA,
    "gemma3_text": GEMMA | {"sliding_window_pattern": 2},
    "gpt2": GPT2 | {"bos_token_id": None, "eos_token_id": None},
    "gpt_neox": {key: value for key, value in NEOX.items() if value != ABSENT},
    "granite": SIZES,
    "olmo2": SIZES,
    "smollm3": SIZES,
    "starcoder2": SIZES,
}

STRUCTURE: dict[str, list[dict[str, Any]]] = {
    "vocab_size": [{"vocab_size": ABSENT}, {"vocab_size": None}],
    "hidden_size": [{"hidden_size": ABSENT, "num_hidden_layers": 1}, {"hidden_size": None}],
    "intermediate_size": [{"intermediate_size": ABSENT}, {"intermediate_size": None}],
    "num_hidden_layers": [{"num_hidden_layers": ABSENT}, {"num_hidden_layers": None}],
    "num_attention_heads": [
        {"num_attention_heads": ABSENT, "hidden_size": 1536, "num_key_value_heads": 1},
        {"num_attention_heads": None},
        {"num_attention_heads": 8},
    ],
    "num_key_value_heads": [
        {"num_key_value_heads": ABSENT, "num_attention_heads": 32, "hidden_size": 256},
        {"num_key_value_heads": None},
        {"num_key_value_heads": 4},
    ],
    "n_embd": [{"n_embd": ABSENT, "n_layer": 1}, {"n_embd": None}],
    "n_head": [{"n_head": ABSENT, "n_embd": 96}, {"n_head": None}, {"n_head": 2}],
    "n_layer": [{"n_layer": ABSENT}, {"n_layer": None}],
    "n_positions": [{"n_positions": ABSENT}, {"n_positions": None}],
    "aliases": [
        {"n_embd": ABSENT, "hidden_size": 64},
        {"n_head": ABSENT, "num_attention_heads": 2},
        {"n_layer": ABSENT, "num_hidden_layers": 2},
        {"n_positions": ABSENT, "max_position_embeddings": 32},
        {"n_head": 4, "num_attention_heads": 2},
    ],
}
"""Sizes that are left out; other sizes make the model small or its heads even."""

FLAGS = (
    "tie_word_embeddings",
    "attention_bias",
    "mlp_bias",
    "use_bias",
    "lm_head_bias",
    "use_bidirectional_attention",
    "is_causal",
    "use_parallel_residual",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "add_cross_attention",
    "use_sliding_window",
)

VALUES: dict[str, list[Any]] = {
    "head_dim": [24, 12],
    "hidden_act": ["silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu"],
    "hidden_activation": ["gelu_pytorch_tanh", "gelu", "silu"],
    "activation_function": ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"],
    "rms_norm_eps": [1e-3],
    "norm_epsilon": [1e-3],
    "layer_norm_eps": [1e-3],
    "layer_norm_epsilon": [1e-3],
    "rope_theta": [500.0, 500],
    "rotary_emb_base": [500],
    "rotary_pct": [0.5, 1.0],
    "partial_rotary_factor": [0.5],
    "rope_local_base_freq": [500.0],
    "original_max_position_embeddings": [16],
    "sliding_window": [3],
    "max_window_layers": [0, 2],
    "sliding_window_pattern": [2],
    "layer_types": [["sliding_attention", "full_attention"] * 2, ["full_attention"] * 4],
    "no_rope_layers": [[1, 0, 0, 1], []],
    "no_rope_layer_interval": [2],
    "attn_logit_softcapping": [5.0],
    "final_logit_softcapping": [5.0],
    "query_pre_attn_scalar": [10],
    "embedding_multiplier": [3.0],
    "logits_scaling": [3.0],
    "residual_multiplier": [3.0],
    "attention_multiplier": [3.0],
    "n_inner": [40],
} | {flag: [True, False] for flag in FLAGS}
"""Values of keys that no base has; each key is also given as null."""

WINDOW = {"use_sliding_window": True, "sliding_window": 3}
COMBINED: list[dict[str, Any]] = [
    {"sliding_window_pattern": ABSENT, "num_hidden_layers": 7},
    WINDOW,
    WINDOW | {"max_window_layers": 1},
    WINDOW | {"max_window_layers": None},
    WINDOW | {"max_window_layers": 1, "layer_types": None},
    {"use_sliding_window": True, "max_window_layers": 1},
    {"use_sliding_window": True, "sliding_window": None, "max_window_layers": 1},
    WINDOW | {"layer_types": ["sliding_attention", "full_attention"] * 2},
    {"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"] * 2},
    {"sliding_window": None, "layer_types": ["full_attention"] * 4},
    {"sliding_window": None, "layer_types": ["sliding_attention"] * 4},
    WINDOW | {"no_rope_layers": [0, 1, 1, 0]},
    WINDOW | {"sliding_window_pattern": 2},
]

_DEFAULT = {"rope_type": "default"}
_LINEAR = {"rope_type": "linear", "factor": 7.0}
_DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}
_YARN = {"rope_type": "yarn", "factor": 4.0}
_LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_ORIGINAL = {"original_max_position_embeddings": 16}


def scalings(pairs: int) -> list[dict[str, Any]]:
    """Return scalings of rotary embeddings with a number of frequencies."""
    short, long = [1 + i / 8 for i in range(pairs)], [2.0 + i for i in range(pairs)]
    longrope: dict[str, Any] = {"short_factor": short, "long_factor": long}
    longrope = {"rope_type": "longrope"} | longrope
    old_longrope = {"type": "longrope", "short_factor": short, "long_factor": long}
    return [
        _DEFAULT,
        {"type": "default"},
        _LINEAR,
        {"type": "linear", "factor": 7.0},
        {"type": "linear", "rope_type": "default", "factor": 7.0},
        {"type": "default", "rope_type": "linear", "factor": 7.0},
        _DYNAMIC,
        {"type": "dynamic", "factor": 4.0},
        _DYNAMIC | _ORIGINAL,
        _YARN,
        _YARN | {"factor": None},
        {"type": "yarn", "factor": 4.0},
        _YARN | _ORIGINAL,
        _YARN | _ORIGINAL | {"factor": None},
        _YARN | {"original_max_position_embeddings": None},
        _YARN | _ORIGINAL | {"beta_fast": 4, "beta_slow": 2, "truncate": False},
        _YARN | _ORIGINAL | {"beta_fast": None, "beta_slow": None, "attention_factor": None},
        _YARN | _ORIGINAL | {"mscale": 2.0, "mscale_all_dim": 0.5},
        _YARN | _ORIGINAL | {"mscale": 2.0, "mscale_all_dim": 0},
        _YARN | _ORIGINAL | {"mscale": 2.0, "attention_factor": 0.5},
        _LLAMA3,
        _LLAMA3 | _ORIGINAL,
        longrope,
        old_longrope,
        longrope | {"type": "su", "rope_type": "su"},
        old_longrope | {"type": "su"},
        longrope | {"factor": 8.0},
        longrope | {"factor": None},
        longrope | _ORIGINAL,
        longrope | _ORIGINAL | {"factor": 8.0},
        longrope | {"factor": 8.0, "attention_factor": 1.5},
        longrope | _ORIGINAL | {"attention_factor": 1.5},
        {"rope_type": "proportional", "partial_rotary_factor": 0.5},
        {"rope_type": "unknown"},
    ]


def rotary_cases(family: str) -> Iterator[dict[str, Any]]:
    """Yield the cases of rotary embeddings: kinds × places where their values may stand."""
    pairs = 4 if family == "gpt_neox" else 8
    for scaling in scalings(pairs):
        yield {"rope_scaling": scaling}
        yield {"rope_parameters": scaling}
        yield {"rope_scaling": scaling, "original_max_position_embeddings": 32}
        yield {"rope_parameters": scaling, "original_max_position_embeddings": 32}
        yield {"rope_parameters": scaling | {"rope_theta": 300.0}, "rope_theta": 500.0}
    nothing: list[dict[str, Any] | None] = [None, {}]
    for empty in nothing:
        yield {"rope_scaling": empty}
        yield {"rope_parameters": empty}
        yield {"rope_scaling": empty, "rope_parameters": _LINEAR | {"rope_theta": 300.0}}
    yield {"rope_scaling": _LINEAR, "rope_parameters": _DEFAULT | {"rope_theta": 300.0}}
    yield {"rope_scaling": _LINEAR | {"rope_theta": 300.0}}
    yield {"rope_scaling": _LINEAR | {"rope_theta": 300.0}, "rope_theta": 500.0}
    yield {"rope_parameters": {"rope_theta": 300.0}}
    yield {"rope_parameters": {"rope_theta": None}}
    for factor in (0.5, 1.0, None):
        yield {"rope_parameters": _DEFAULT | {"partial_rotary_factor": factor}}
        yield {"rope_scaling": _LINEAR | {"partial_rotary_factor": factor}}
    yield {
        "rope_parameters": _DEFAULT | {"partial_rotary_factor": 1.0},
        "partial_rotary_factor": 0.5,
    }
    yield from _by_layer_type()


def _by_layer_type() -> Iterator[dict[str, Any]]:
    full, sliding = _LINEAR | {"rope_theta": 300.0}, _DEFAULT | {"rope_theta": 400.0}
    both = {"full_attention": full, "sliding_attention": sliding}
    yield {"rope_parameters": both}
    yield {"rope_parameters": both, "rope_theta": 500.0, "rope_local_base_freq": 600.0}
    yield {"rope_parameters": both, "rope_scaling": {"rope_type": "linear", "factor": 3.0}}
    yield {"rope_parameters": {"full_attention": full}}
    yield {"rope_parameters": {"sliding_attention": sliding}}
    yield {"rope_parameters": {"full_attention": None, "sliding_attention": None}}
    yield {"rope_parameters": {"full_attention": {}, "sliding_attention": {}}}
    yield {"rope_parameters": {"full_attention": _YARN, "sliding_attention": _LINEAR}}
    yield {"rope_scaling": _LINEAR, "rope_theta": 500.0, "rope_local_base_freq": 600.0}


def cases(family: str) -> Iterator[dict[str, Any]]:
    """Yield all changes of a family's base; the first one is none."""
    yield {}
    base = BASES[family]
    for key, changes in STRUCTURE.items():
        if key in base or (key == "aliases" and family == "gpt2"):
            yield from changes
    for key, values in VALUES.items():
        if key in base:
            yield {key: ABSENT}
        for value in (None, *values):
            yield {key: value}
    yield from COMBINED
    if family != "gpt2":
        yield from rotary_cases(family)


def apply(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a case."""
    return {key: value for key, value in (base | change).items() if value != ABSENT}
