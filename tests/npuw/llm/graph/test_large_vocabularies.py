"""Capped logits of a vocabulary as large as Gemma's: one row exceeds CMX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.conftest import HEADS, HIDDEN, INNER, KV_HEADS, WIDTH, ask, write_safetensors

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer import Core

IDS = np.array([[3, 70, 255_999, 12]])
VOCABULARY = 256_000
CAP = 0.5
"""Most logits of random weights are near it."""


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Gemma 2 of one tiny layer with the real vocabulary."""
    folder = tmp_path_factory.mktemp("capped")
    config = {
        "architectures": ["Gemma2ForCausalLM"],
        "model_type": "gemma2",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": WIDTH,
        "query_pre_attn_scalar": WIDTH,
        "vocab_size": VOCABULARY,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": CAP,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", _weights())
    return folder


def _weights() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(4)
    shapes = {
        "self_attn.q_proj": (HEADS * WIDTH, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * WIDTH, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * WIDTH, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * WIDTH),
        "mlp.gate_proj": (INNER, HIDDEN),
        "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
        "pre_feedforward_layernorm": (HIDDEN,),
        "post_feedforward_layernorm": (HIDDEN,),
    }
    named = {f"model.layers.0.{name}.weight": shape for name, shape in shapes.items()}
    named |= {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,)}
    return {
        name: (draw.standard_normal(shape) / np.sqrt(HIDDEN)).astype(np.float32)
        for name, shape in named.items()
    }


@pytest.fixture(scope="module")
def expected(capped: Path) -> np.ndarray:
    """Return the last token's logits, computed by the interpreter."""
    logits = ask(_Interpreted(capped), IDS)
    assert np.median(np.abs(logits)) > CAP / 2, "the cap has an effect"
    return logits


class _Interpreted:
    """The interpreter with a request's interface."""

    def __init__(self, folder: Path) -> None:
        self._interpreter = Interpreter(read_folder(folder))

    def infer(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._interpreter.run(inputs | {"beam_idx": np.zeros(1, np.int32)})


@pytest.mark.matrix
@pytest.mark.parametrize("platform", ["3720", "4000", "5010"])
@pytest.mark.parametrize(("precision", "error"), [("f32", 1e-5), ("f16", 1e-2)])
def test_capped_logits_equal_the_interpreters(
    capped: Path, expected: np.ndarray, precision: str, error: float, platform: str
) -> None:
    options = {"INFERENCE_PRECISION_HINT": precision, "NPU_PLATFORM": platform}
    assert np.abs(_logits(capped, **options) - expected).max() <= error * CAP


def test_capped_logits_are_equal_without_a_shared_head(capped: Path, expected: np.ndarray) -> None:
    found = _logits(capped, NPUW_LLM_SHARED_HEAD="NO")
    assert np.abs(found - expected).max() <= 1e-2 * CAP


def _logits(folder: Path, **options: str) -> np.ndarray:
    sizes = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    return ask(Core().compile_model(folder, "NPU", sizes | options).create_infer_request(), IDS)
