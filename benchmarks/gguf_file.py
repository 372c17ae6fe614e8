"""GGUF files of Llama models from Hugging Face folders, so that llama.cpp runs equal weights.

Needs the packages gguf and llama-cpp-python, so it runs in the peers' environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]

_TENSORS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
_LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TYPES = {"BF16": np.uint16, "F16": np.float16, "F32": np.float32}


def read_tensors(path: Path) -> Iterator[tuple[str, F32]]:
    """Yield the tensors of a safetensors file, widened to f32."""
    data = np.memmap(path, np.uint8, "r")
    length = int(data[:8].view(np.uint64)[0])
    header: dict[str, Any] = json.loads(data[8 : 8 + length].tobytes())
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = np.array(data[8 + length + begin : 8 + length + end]).view(_TYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        yield name, raw.astype(np.float32).reshape(entry["shape"])


def rename(name: str) -> str:
    """Return a tensor's name in GGUF."""
    stem = name.removesuffix(".weight")
    if stem in _TENSORS:
        return f"{_TENSORS[stem]}.weight"
    layer, rest = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{_LAYER_TENSORS[rest]}.weight"


def pair_neighbours(weight: F32, heads: int) -> F32:
    """Reorder a head's channels: GGUF rotates neighbours together, Hugging Face rotates halves.

    Args:
        weight: [heads × D, inputs].
        heads: number of heads.
    """
    halves = weight.reshape(heads, 2, -1, weight.shape[1])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write_gguf(folder: Path, target: Path) -> None:
    """Write a folder's weights in f16, and its norms in f32."""
    config = json.loads((folder / "config.json").read_text())
    heads = config["num_attention_heads"]
    permuted = {"q_proj": heads, "k_proj": config["num_key_value_heads"]}
    writer = gguf.GGUFWriter(str(target), "llama")
    _add_sizes(writer, config)
    _add_tokens(writer, json.loads((folder / "tokenizer.json").read_text()), config)
    for name, values in read_tensors(folder / "model.safetensors"):
        count = permuted.get(name.split(".")[-2])
        if count is not None:
            values = pair_neighbours(values, count)
        writer.add_tensor(rename(name), values.astype(np.float16) if values.ndim == 2 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_sizes(writer: Any, config: dict[str, Any]) -> None:
    heads = config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def _add_tokens(writer: Any, tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    """Add the vocabulary, which the format requires; prompts are ids."""
    tokens = [f"<unused{index}>" for index in range(config["vocab_size"])]
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    for text, index in (tokenizer["model"]["vocab"] | added).items():
        tokens[index] = text
    merges = tokenizer["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens))
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


def quantise(source: Path, target: Path, precision: str) -> None:
    """Quantise a file to q8_0 or q4_0 with llama.cpp.

    Raises:
        RuntimeError: llama.cpp rejects the file.
    """
    types = {
        "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
        "q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
    }
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = types[precision]
    paths = str(source).encode(), str(target).encode()
    if llama_cpp.llama_model_quantize(*paths, parameters):
        raise RuntimeError(f"llama.cpp cannot quantise {source} to {precision}")
