"""Golden files tests/goldens/fp8: an IR quantised to 8-bit floats by NNCF, and its results.

A small Llama with random weights is exported; ``nncf.quantize`` with FP8_E4M3 and random prompts
converts its weights to f8e4m3, and inserts a FakeConvert before each matmul and after each cache.
The complete IR is small and stored compressed. Logits and greedy tokens are the real OpenVINO's in
f32. Needs the packages of ``make_export_goldens.py``; NNCF is among them:

    python tools/make_fp8_goldens.py           # from the checkout, a minute
"""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path
from typing import Any

import make_export_goldens as exported
import numpy as np
from golden_ir import GOLDENS, export

TARGET = GOLDENS / "fp8"
VOCABULARY = 128
PROMPTS, LENGTH = 8, 24
"""Prompts that calibrate the ranges of activations."""


def config() -> Any:
    """Return a Llama with two layers, whose weights are 40 kB."""
    import transformers

    return transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=1,
        max_position_embeddings=512,
        initializer_range=0.2,  # large, so that greedy decoding has no near-ties
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
    )


def quantise(xml: Path, target: Path) -> None:
    """Quantise an IR with NNCF."""
    import nncf
    import openvino as ov

    random = np.random.RandomState(5)

    def prompt(number: int) -> dict[str, np.ndarray]:
        del number
        return {
            "input_ids": random.randint(10, VOCABULARY, (1, LENGTH)).astype(np.int64),
            "attention_mask": np.ones((1, LENGTH), np.int64),
            "position_ids": np.arange(LENGTH, dtype=np.int64)[None],
            "beam_idx": np.zeros(1, np.int32),
        }

    quantised = nncf.quantize(
        ov.Core().read_model(xml),
        nncf.Dataset(range(PROMPTS), prompt),
        mode=nncf.QuantizationMode.FP8_E4M3,
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=PROMPTS,
    )
    ov.save_model(quantised, target, compress_to_fp16=False)


def main() -> None:
    """Write all files."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        exported.write_folder(config(), work / "model")
        export(work / "model", exported.TASK, ["--weight-format", "fp32"], work / "exported")
        xml = work / "openvino_model.xml"
        quantise(work / "exported" / "openvino_model.xml", xml)
        TARGET.mkdir(parents=True, exist_ok=True)
        for file in (xml, xml.with_suffix(".bin")):
            packed = lzma.compress(file.read_bytes(), preset=9)
            (TARGET / f"{file.name}.xz").write_bytes(packed)
        found = exported.oracle(xml, VOCABULARY)
        np.savez_compressed(TARGET / "llama.npz", **found)
        print(f"greedy {found['greedy']}")


if __name__ == "__main__":
    main()
