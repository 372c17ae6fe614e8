"""Unsupported or inconsistent settings are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compiler_layer.errors import BadModel, UnsupportedModel
from compiler_layer.frontends.huggingface import read_folder

FolderOf = Callable[..., Path]

LLAMA3 = {"rope_type": "llama3", "factor": 8.0}
FACTORS = LLAMA3 | {"original_max_position_embeddings": 64, "low_freq_factor": 4.0}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [1.0, 2.0]}


def check_refused(folder: Path, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as raised:
        read_folder(folder)
    assert says in str(raised.value)
    assert str(folder / "config.json") in str(raised.value)


@pytest.mark.parametrize(
    ("model", "key", "value"),
    [
        ("llama_yarn", "hidden_act", "gelu"),
        ("llama_yarn", "quantization_config", {"bits": 4}),
        ("mistral", "layer_types", ["full_attention", "sliding_attention"]),
        ("qwen2", "layer_types", ["full_attention", "full_attention", "linear_attention"]),
        ("phi3", "attention_bias", True),
        ("phi3", "lm_head_bias", True),
        ("gemma2", "hidden_activation", "gelu"),
        ("gemma3", "attn_logit_softcapping", 50.0),
        ("gemma3", "use_bidirectional_attention", True),
        ("olmo2", "mlp_bias", True),
        ("starcoder2", "hidden_act", "relu"),
        ("gpt2", "activation_function", "relu"),
        ("gpt2", "scale_attn_weights", False),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("gpt2", "add_cross_attention", True),
        ("gpt_neox", "hidden_act", ["gelu"]),
        ("gpt_neox", "num_key_value_heads", 2),
    ],
)
def test_an_unsupported_variation_is_named(
    folder_of: FolderOf, model: str, key: str, value: object
) -> None:
    folder = folder_of(model, **{key: value})
    check_refused(folder, UnsupportedModel, f"{key} = {value!r} is not supported")


@pytest.mark.parametrize(
    ("scaling", "error", "says"),
    [
        (
            {"rope_type": "proportional", "factor": 2.0},
            UnsupportedModel,
            "rope_type 'proportional'",
        ),
        ({"rope_type": ["linear"]}, UnsupportedModel, "rope_type ['linear']"),
        ({"rope_type": "yarn"}, UnsupportedModel, "rope_type 'yarn' without a factor"),
        ({"type": "linear", "factor": "2"}, BadModel, "rope_scaling.factor must be a positive"),
        (LLAMA3, BadModel, "rope_scaling.low_freq_factor must be a positive number, not None"),
        (FACTORS | {"high_freq_factor": 1.0}, BadModel, "high_freq_factor must be above"),
        (LONGROPE, BadModel, "rope_scaling.short_factor must be a list of 4 positive numbers"),
        ({"rope_theta": 0.5}, BadModel, "rope_theta must be above 1, not 0.5"),
        ("linear", BadModel, "rope_scaling must be an object, not 'linear'"),
    ],
)
def test_an_unsupported_rotary_embedding_is_named(
    folder_of: FolderOf, scaling: object, error: type[Exception], says: str
) -> None:
    check_refused(folder_of("llama_biased", rope_scaling=scaling), error, says)


@pytest.mark.parametrize(
    ("model", "values", "says"),
    [
        ("llama_yarn", {"head_dim": 7}, "and head_dim must be even"),
        ("llama_yarn", {"head_dim": 10**12}, "head_dim must be a positive integer below 16777216"),
        ("llama_yarn", {"num_key_value_heads": 3}, "num_key_value_heads must divide"),
        ("llama_biased", {"mlp_bias": "no"}, "mlp_bias must be true or false, not 'no'"),
        ("mistral", {"sliding_window": 0}, "sliding_window must be a positive integer"),
        ("qwen2", {"layer_types": ["full_attention"]}, "layer_types must be a list of 3 names"),
        ("qwen2", {"layer_types": "full_attention"}, "layer_types must be a list of 3 names"),
        ("qwen2", {"use_sliding_window": False}, "sliding_window must be positive for layers"),
        (
            "qwen2",
            {"layer_types": None, "max_window_layers": -1},
            "max_window_layers must be an integer not below 0",
        ),
        ("gemma2", {"final_logit_softcapping": "soft"}, "final_logit_softcapping must be a posi"),
        ("smollm3", {"no_rope_layers": [1, 0]}, "no_rope_layers must be a list of 3 zeros and"),
        ("gpt2", {"n_head": 5}, "n_head must divide n_embd"),
        ("gpt_neox", {"rotary_pct": 0.13}, "1 of 8 channels cannot be rotated in pairs"),
        ("gpt_neox", {"rotary_pct": 2.0}, "16 of 8 channels cannot be rotated in pairs"),
    ],
)
def test_inconsistent_values_are_named(
    folder_of: FolderOf, model: str, values: dict[str, object], says: str
) -> None:
    check_refused(folder_of(model, **values), BadModel, says)
