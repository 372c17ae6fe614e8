"""Golden files tests/goldens/longrope: a Phi-3 whose rotary factors depend on the text's length.

The exporter writes both sets of factors, and the largest position of an inference chooses one;
exporters before optimum-intel 2.2 wrote only the set for short texts. The logits of prompts and of
further tokens, below and beyond the original context, are the real OpenVINO's in f32.

    pip install torch "transformers==4.57.6" "optimum-intel[openvino]==2.2.0"
    python tools/make_longrope_goldens.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from golden_ir import EXACT, GOLDENS, PRECISIONS, export, keep

TARGET = GOLDENS / "longrope"
VOCABULARY, CONTEXT, STEPS = 512, 64, 5
PROMPTS = (40, 62, 100)
TASK = "text-generation-with-past"


def write_folder(folder: Path) -> None:
    """Write a small model with random weights."""
    import torch
    import transformers

    torch.manual_seed(3)
    config = transformers.Phi3Config(
        vocab_size=VOCABULARY,
        hidden_size=96,
        intermediate_size=160,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=512,
        original_max_position_embeddings=CONTEXT,
        rope_scaling={
            "type": "longrope",
            "short_factor": [1.0 + 0.05 * pair for pair in range(8)],
            "long_factor": [1.5 + 0.6 * pair for pair in range(8)],
        },
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )
    transformers.Phi3ForCausalLM(config).save_pretrained(folder)


def oracle(xml: Path) -> dict[str, np.ndarray]:
    """Return logits after each prompt, and after further tokens."""
    import openvino as ov

    request = ov.Core().compile_model(xml, "CPU", EXACT).create_infer_request()
    ids = np.random.RandomState(6).randint(10, VOCABULARY, max(PROMPTS) + STEPS).astype(np.int64)
    found: dict[str, np.ndarray] = {"ids": ids}
    for count in PROMPTS:
        request.reset_state()
        logits = [_said(request, ids[:count], 0)]
        for end in range(count, count + STEPS):
            logits.append(_said(request, ids[end : end + 1], end))
        found[f"logits_{count}"] = np.array(logits)
    return found


def _said(request: Any, ids: np.ndarray, past: int) -> np.ndarray:
    count = len(ids)
    inputs = {
        "input_ids": ids[None],
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    request.infer(inputs)
    return np.array(request.get_tensor("logits").data[0, -1])


def main() -> None:
    """Write the golden files."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        write_folder(work / "model")
        export(work / "model", TASK, PRECISIONS["fp16"], work / "phi3_fp16")
        found = oracle(keep(work / "phi3_fp16" / "openvino_model.xml", TARGET, "phi3_fp16", work))
        np.savez_compressed(TARGET / "phi3_fp16.npz", **found)
        print({key: value.shape for key, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
