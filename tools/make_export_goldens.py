"""Golden files tests/goldens/exported: IR of the real exporter, by architecture and precision.

Each model is a small one of a real architecture, with random weights; the real exporter writes and
compresses its IR. The XML is stored, and a recipe of the ``.bin``: weights and scales are drawn
from a seed (with the exporter's types and similar magnitudes), all other constants are stored.
Logits and greedy tokens are the real OpenVINO's, in f32, for the restored IR.

Needs PyTorch, transformers, optimum-intel and openvino, which only such scripts need:

    pip install torch==2.13.0 "transformers==4.57.6" "optimum-intel[openvino]==1.27.0"
    python tools/make_export_goldens.py [NAME …]       # from the checkout, about twenty minutes
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, EXPORTED, ROOT, export, keep

TARGET = EXPORTED
TASK = "text-generation-with-past"
PROMPTS = (1, 7, 100)
GREEDY_TOKENS = 32
VOCABULARY = 1024
WINDOW = 64
"""Window of sliding attention, shorter than the longest prompt."""

PRECISIONS = {
    "fp16": ["--weight-format", "fp16"],
    "int8": ["--weight-format", "int8"],
    "int4": ["--weight-format", "int4", "--sym", "--ratio", "1.0", "--group-size", "32"],
}
MORE_PRECISIONS = {
    "fp32": ["--weight-format", "fp32"],
    "int4_asym": ["--weight-format", "int4", "--ratio", "1.0", "--group-size", "32"],
    "int4_channel": ["--weight-format", "int4", "--sym", "--ratio", "1.0", "--group-size", "-1"],
    "int4_all": [
        *("--weight-format", "int4", "--sym", "--ratio", "1.0", "--group-size", "32"),
        "--all-layers",
    ],
}
"""Further weight formats of the exporter, for one architecture."""

BF16: dict[str, list[str]] = {"bf16": []}
"""A bf16 checkpoint, for one architecture; the exporter keeps its weights unchanged."""


def configs() -> dict[str, Any]:
    """Return a small configuration of each architecture."""
    import transformers as t

    base = {
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 512,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    small = {
        "hidden_size": 96,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        **base,
    }
    windows = {"head_dim": 16, "sliding_window": WINDOW, "query_pre_attn_scalar": 16}
    return {
        "llama": t.LlamaConfig(**small),
        "mistral": t.MistralConfig(sliding_window=WINDOW, **small),
        "qwen2": t.Qwen2Config(**small),
        "qwen3": t.Qwen3Config(head_dim=32, **small),
        "phi3": t.Phi3Config(**small),
        "gemma2": t.Gemma2Config(**windows, **small),
        "gemma3": t.Gemma3TextConfig(**windows, **{**small, "num_hidden_layers": 7}),
        "gpt2": t.GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=512,
            n_embd=96,
            n_layer=2,
            n_head=6,
            bos_token_id=0,
            eos_token_id=2,
        ),
        "gpt_neox": t.GPTNeoXConfig(
            **base,
            hidden_size=96,
            intermediate_size=160,
            num_hidden_layers=2,
            num_attention_heads=6,
        ),
    }


def more_configs() -> dict[str, Any]:
    """Return further architectures with other ops, for one precision only."""
    import transformers as t

    ends = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}
    width = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6, **ends}
    common = {"intermediate_size": 160, "max_position_embeddings": 512, **width}
    grouped = {"num_key_value_heads": 2, **common}
    gpt = {"n_embd": 96, "n_layer": 2, "n_head": 6, **ends}
    experts = {"head_dim": 16, "moe_intermediate_size": 64, **grouped}
    return {
        "bloom": t.BloomConfig(hidden_size=96, n_layer=2, n_head=6, **ends),
        "cohere": t.CohereConfig(**grouped),
        "dbrx": t.DbrxConfig(
            d_model=96, n_heads=6, n_layers=2, max_seq_len=512, vocab_size=VOCABULARY
        ),
        "falcon": t.FalconConfig(**width),
        "glm4": t.Glm4Config(head_dim=16, **grouped),
        "gpt_bigcode": t.GPTBigCodeConfig(n_positions=512, **gpt),
        # Its window is a table of booleans, whose length is the number of positions.
        "gpt_neo": t.GPTNeoConfig(
            max_position_embeddings=192,
            hidden_size=96,
            num_layers=2,
            num_heads=6,
            attention_types=[[["global", "local"], 1]],
            window_size=16,
            **ends,
        ),
        "gptj": t.GPTJConfig(rotary_dim=16, n_positions=512, **gpt),
        # Chunks and temperatures depend on token counts: one full layer, one in chunks.
        "llama4": t.Llama4TextConfig(
            attention_chunk_size=32,
            floor_scale=16,
            head_dim=16,
            intermediate_size_mlp=160,
            num_local_experts=4,
            interleave_moe_layer_step=2,
            no_rope_layers=[1, 0],
            **grouped,
        ),
        "mixtral": t.MixtralConfig(num_local_experts=4, **grouped),
        "mpt": t.MptConfig(
            d_model=96, n_heads=6, n_layers=2, max_seq_len=512, vocab_size=VOCABULARY
        ),
        "opt": t.OPTConfig(
            ffn_dim=160, max_position_embeddings=512, word_embed_proj_dim=96, **width
        ),
        "phi": t.PhiConfig(**common),
        "qwen2_moe": t.Qwen2MoeConfig(
            num_experts=4,
            num_experts_per_tok=2,
            shared_expert_intermediate_size=64,
            moe_intermediate_size=64,
            **grouped,
        ),
        # With normalised weights OpenVINO itself fuses all experts into one matmul.
        "qwen3_moe": t.Qwen3MoeConfig(
            num_experts=16, num_experts_per_tok=6, norm_topk_prob=True, **experts
        ),
        "stablelm": t.StableLmConfig(**grouped),
    }


def deep_configs() -> dict[str, Any]:
    """Return the first architectures, and a mixture of experts, with enough layers to be folded."""
    deep: dict[str, Any] = {}
    mixture = {"qwen3_moe": more_configs()["qwen3_moe"]}
    for name, config in (configs() | mixture).items():
        # A repeated block has two layers in Gemma 2, six in Gemma 3.
        layers = {"gemma2": 6, "gemma3": 18}.get(name, 5)
        numbers = {"num_hidden_layers": layers, "n_layer": layers, "layer_types": None}
        values = {key: value for key, value in config.to_dict().items() if key not in numbers}
        deep[f"{name}_deep"] = type(config)(**values, **_layers_of(config, layers))
    return deep


def _layers_of(config: Any, layers: int) -> dict[str, int]:
    return {"n_layer" if hasattr(config, "n_layer") else "num_hidden_layers": layers}


def write_folder(config: Any, folder: Path, dtype: str = "float32") -> None:
    """Write a Hugging Face folder with random weights and the demo model's tokenizer."""
    import torch
    import transformers

    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    for file in (ROOT / "models" / "demo").glob("*token*.json"):
        shutil.copy(file, folder)


def oracle(xml: Path, vocabulary: int = VOCABULARY) -> dict[str, np.ndarray]:
    """Return the last token's logits of each prompt, and greedy tokens, from OpenVINO in f32."""
    import openvino as ov

    compiled = ov.Core().compile_model(xml, "CPU", EXACT)
    request = compiled.create_infer_request()
    known = {name for port in compiled.inputs for name in port.get_names()}

    def infer(tokens: np.ndarray, past: int) -> np.ndarray:
        n = tokens.shape[1]
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones((1, past + n), np.int64),
            "position_ids": np.arange(past, past + n, dtype=np.int64)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        request.infer({name: value for name, value in inputs.items() if name in known})
        return np.array(request.get_tensor("logits").data[0, -1])

    random = np.random.RandomState(11)
    found: dict[str, np.ndarray] = {}
    for n in PROMPTS:
        request.reset_state()
        found[f"prompt_{n}"] = random.randint(10, vocabulary, (1, n)).astype(np.int64)
        found[f"logits_{n}"] = infer(found[f"prompt_{n}"], 0)
    # The conversation continues from the last prompt.
    logits = found[f"logits_{PROMPTS[-1]}"]
    greedy = [int(logits.argmax())]
    for past in range(PROMPTS[-1], PROMPTS[-1] + GREEDY_TOKENS - 1):
        logits = infer(np.array([greedy[-1:]]), past)
        greedy.append(int(logits.argmax()))
    found["greedy"] = np.array(greedy)
    # If random weights repeat a token, the logits still depend on the complete past.
    found["logits_greedy"] = logits
    return found


def make(name: str, folder: Path, options: list[str], work: Path) -> None:
    """Write the golden files of one architecture in one precision."""
    ir = work / name
    export(folder, TASK, options, ir)
    found = oracle(keep(ir / "openvino_model.xml", TARGET, name, work))
    np.savez_compressed(TARGET / f"{name}.npz", **found)
    print(f"{name}: greedy {found['greedy'][:8]}", flush=True)


def main() -> None:
    """Write all golden files, or those named (``llama_int8``)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args().names
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        fp16 = {"fp16": PRECISIONS["fp16"]}
        wanted_of = {
            **dict.fromkeys(configs(), PRECISIONS),
            **dict.fromkeys(more_configs(), fp16),
            "llama": PRECISIONS | MORE_PRECISIONS,
            "mixtral": PRECISIONS,
            "qwen3_moe": PRECISIONS,
            **dict.fromkeys(deep_configs(), fp16),
            "qwen2": PRECISIONS | BF16,
        }
        for architecture, config in (configs() | more_configs() | deep_configs()).items():
            precisions = wanted_of[architecture]
            for precision, options in precisions.items():
                name = f"{architecture}_{precision}"
                if wanted and name not in wanted:
                    continue
                dtype = "bfloat16" if precision in BF16 else "float32"
                folder = work / f"{architecture}-{dtype}"
                if not folder.exists():
                    write_folder(config, folder, dtype)
                make(name, folder, options, work)


if __name__ == "__main__":
    main()
