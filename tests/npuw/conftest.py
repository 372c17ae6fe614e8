"""A tiny Llama of random weights, for tests that need many models fast."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.llm.request.infer_request import InferRequest

VOCABULARY, HIDDEN, HEADS, KV_HEADS, WIDTH, INNER, LAYERS = 97, 32, 4, 2, 8, 48, 2


def _weights(layers: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(8)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (draw.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

    tensors = {
        "model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN) * 5,
        "model.norm.weight": np.ones(HIDDEN, np.float32),
        "lm_head.weight": matrix(VOCABULARY, HIDDEN),
    }
    shapes = {
        "self_attn.q_proj": (HEADS * WIDTH, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * WIDTH, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * WIDTH, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * WIDTH),
        "mlp.gate_proj": (INNER, HIDDEN),
        "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
    }
    for layer in range(layers):
        for name, shape in shapes.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = matrix(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"model.layers.{layer}.{name}.weight"] = np.ones(HIDDEN, np.float32)
    return tensors


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write the format: header length, header, bytes."""
    header: dict[str, Any] = {}
    offset = 0
    for name, tensor in tensors.items():
        span = [offset, offset + tensor.nbytes]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": span}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    content = b"".join(tensor.tobytes() for tensor in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def write_tiny(folder: Path, layers: int = LAYERS) -> Path:
    """Write the model's Hugging Face folder."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": WIDTH,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", _weights(layers))
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tiny model."""
    return write_tiny(tmp_path_factory.mktemp("tiny_llama"))


@pytest.fixture(scope="session")
def tall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the same model with seven layers."""
    return write_tiny(tmp_path_factory.mktemp("tall_llama"), 7)


def caches_of(request: Any) -> dict[str, np.ndarray]:
    """Return the values of a request's variables, except the one that counts tokens."""
    states = request.query_state()
    return {one.name: one.state.data for one in states if one.name != "npuw_stored_tokens_state"}


def ask(request: Any, ids: np.ndarray, past: int = 0) -> np.ndarray:
    """Infer ids [1, n] after ``past`` stored tokens; return the last one's logits."""
    count = ids.shape[1]
    inputs = {
        "input_ids": ids,
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count)[None],
    }
    return request.infer(inputs)["logits"][0, -1].copy()


class Talk:
    """A request with an interface of tokens."""

    def __init__(self, request: InferRequest) -> None:
        self.request = request
        self.said = 0

    def tell(self, ids: list[int] | np.ndarray, back: int = 0) -> np.ndarray:
        """Infer tokens, after a rewind by ``back``; return the last token's logits."""
        self.said -= back
        logits = ask(self.request, np.array([ids], np.int64), self.said)
        self.said += len(ids)
        return logits

    def reset(self) -> None:
        self.request.reset_state()
        self.said = 0


Talks = Callable[..., Talk]

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
}


@pytest.fixture(scope="session")
def talks(tiny: Path, shared_folder: Path) -> Talks:
    """Begin conversations with the tiny model; compile models once per configuration.

    All processes of a run share the programs. A test of what compiling logs or writes passes
    ``CACHE_DIR=""``.
    """
    compiled: dict[str, Any] = {}
    cache = {"CACHE_DIR": str(shared_folder / "programs")}

    def begin(model: Path = tiny, **options: Any) -> Talk:
        config = SMALL | cache | options
        key = repr((model, sorted(config.items())))
        if key not in compiled:
            compiled[key] = Core().compile_model(model, "NPU", config)
        return Talk(compiled[key].create_infer_request())

    return begin
