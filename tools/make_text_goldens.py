"""Golden files tests/goldens/texts: IR of the real exporter for embedding and reranking models.

As in make_export_goldens.py: small models of real architectures, with random weights; the XML is
stored, and a recipe of the ``.bin``. Outputs for texts of several lengths are the real OpenVINO's
in f32, for the restored IR.

Needs PyTorch, transformers, optimum-intel and openvino, like make_export_goldens.py:

    python tools/make_text_goldens.py [NAME …]       # from the checkout, about two minutes
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import GOLDENS, export, keep

TARGET = GOLDENS / "texts"
VOCABULARY = 512
PADDING_ID = 1
LENGTHS = (1, 7, 64, 65, 120)
WINDOW = 32


def models() -> dict[str, tuple[str, Any]]:
    """Return a small model of each kind, and the exporter's task."""
    import transformers as t

    base = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "pad_token_id": PADDING_ID,
        "initializer_range": 0.1,
    }
    grouped = {"num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, **base}
    deep = {**grouped, "num_hidden_layers": 5}
    alike = {**grouped, "num_key_value_heads": 4}
    sliding = {
        "use_sliding_window": True,
        "sliding_window": WINDOW,
        "max_window_layers": 1,
        **grouped,
    }
    windows = {"sliding_window": WINDOW, "query_pre_attn_scalar": 16, **grouped}
    encoder = {"max_position_embeddings": 130, **base}
    one = {"num_labels": 1}
    embed, rank = "feature-extraction", "text-classification"
    return {
        "qwen3": (embed, t.Qwen3Model(t.Qwen3Config(**deep))),
        "llama": (embed, t.LlamaModel(t.LlamaConfig(**alike))),
        "qwen2_windows": (embed, t.Qwen2Model(t.Qwen2Config(**sliding))),
        "gemma3": (
            embed,
            t.Gemma3TextModel(t.Gemma3TextConfig(use_bidirectional_attention=True, **windows)),
        ),
        "bert": (embed, t.BertModel(t.BertConfig(**encoder))),
        "xlmr": (
            rank,
            t.XLMRobertaForSequenceClassification(t.XLMRobertaConfig(**one, **encoder)),
        ),
        "qwen3_score": (rank, t.Qwen3ForSequenceClassification(t.Qwen3Config(**one, **grouped))),
    }


def write_folder(model: Any, folder: Path) -> None:
    """Write a Hugging Face folder with random weights, biases and norms included."""
    import torch

    torch.manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
    model.eval().save_pretrained(folder)


def oracle(xml: Path) -> dict[str, np.ndarray]:
    """Return OpenVINO's f32 outputs of each text alone: rows of the first, middle and last token.

    For a model without outputs of tokens, these are the outputs of the text.
    """
    import openvino as ov

    compiled = ov.Core().compile_model(xml, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    known = {name for port in compiled.inputs for name in port.get_names()}
    random = np.random.RandomState(11)
    found: dict[str, np.ndarray] = {}
    for n in LENGTHS:
        ids = random.randint(10, VOCABULARY, (1, n)).astype(np.int64)
        types = (np.arange(n)[None] > n // 2).astype(np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": types,
            "position_ids": np.arange(n)[None],
        }
        out = compiled({name: value for name, value in given.items() if name in known})[0]
        found[f"text_{n}"] = ids
        found[f"said_{n}"] = out[:, [0, n // 2, n - 1]] if out.ndim > 2 else out
    return found


def make(name: str, task: str, model: Any, work: Path) -> None:
    """Write the golden files of one model."""
    folder, ir = work / f"{name}-hf", work / name
    write_folder(model, folder)
    export(folder, task, ["--weight-format", "fp16"], ir)
    found = oracle(keep(ir / "openvino_model.xml", TARGET, name, work))
    np.savez_compressed(TARGET / f"{name}.npz", **found)
    print(f"{name}: {found['said_7'].reshape(-1)[:3]}", flush=True)


def main() -> None:
    """Write all golden files, or those named."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args().names
    TARGET.mkdir(exist_ok=True)
    torch.manual_seed(7)
    with tempfile.TemporaryDirectory() as scratch:
        for name, (task, model) in models().items():
            if not wanted or name in wanted:
                make(name, task, model, Path(scratch))


if __name__ == "__main__":
    main()
