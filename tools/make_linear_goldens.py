"""Golden files tests/goldens/linear: LFM-2 as the real exporter writes it, and OpenVINO's results.

Its short convolutions keep the last tokens in a state of fixed size. The exported graph has a
branch for prompts, which ignores the state, and one for single tokens, whose filters differ when
weights have 8 bits. Therefore OpenVINO reads a whole prompt, and then single tokens. Weights of
convolutions are enlarged, so that the states affect the results.

A Mamba is exported, too, without results, as it cannot be split.

    pip install torch transformers "optimum-intel[openvino]" openvino
    python tools/make_linear_goldens.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from golden_ir import EXACT, GOLDENS, PRECISIONS, export, keep

TARGET = GOLDENS / "linear"
VOCABULARY, PROMPT, STEPS = 1000, 50, 8
TASK = "text-generation-with-past"


def write_folder(folder: Path) -> None:
    """Write a small model with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.Lfm2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=2,
        layer_types=["conv", "full_attention", "conv", "conv", "full_attention"],
        conv_L_cache=3,
        block_auto_adjust_ff_dim=False,
        max_position_embeddings=2048,
    )
    model = transformers.Lfm2ForCausalLM(config).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.dim() > 1:
                values.mul_(20 if ".conv.conv." in name else 4)
    model.save_pretrained(folder)


def write_mamba(folder: Path) -> None:
    """Write a small model with another kind of state."""
    import transformers

    config = transformers.MambaConfig(
        vocab_size=100, hidden_size=16, state_size=4, num_hidden_layers=1, time_step_rank=4
    )
    transformers.MambaForCausalLM(config).save_pretrained(folder)


def oracle(xml: Path) -> dict[str, np.ndarray]:
    """Return logits after a prompt and after further tokens, in f32, and the final states."""
    import openvino as ov

    request = ov.Core().compile_model(xml, "CPU", EXACT).create_infer_request()
    ids = np.random.RandomState(6).randint(10, VOCABULARY, (1, PROMPT + STEPS)).astype(np.int64)
    logits: list[np.ndarray] = []
    begin = 0
    for end in range(PROMPT, PROMPT + STEPS + 1):
        inputs = {
            "input_ids": ids[:, begin:end],
            "attention_mask": np.ones((1, end), np.int64),
            "beam_idx": np.zeros(1, np.int32),
        }
        request.infer(inputs)
        logits.append(np.array(request.get_tensor("logits").data[0, -1]))
        begin = end
    states = {each.name: np.array(each.state.data) for each in request.query_state()}
    return {"ids": ids, "logits": np.array(logits), **states}


def main() -> None:
    """Write the golden files."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        write_folder(work / "model")
        for precision, options in PRECISIONS.items():
            name = f"lfm2_{precision}"
            export(work / "model", TASK, options, work / name)
            found = oracle(keep(work / name / "openvino_model.xml", TARGET, name, work))
            np.savez_compressed(TARGET / f"{name}.npz", **found)
            print(name, {key: value.shape for key, value in found.items()}, flush=True)
        write_mamba(work / "mamba")
        export(work / "mamba", TASK, PRECISIONS["fp16"], work / "mamba_ir")
        keep(work / "mamba_ir" / "openvino_model.xml", TARGET, "mamba_fp16", work)


if __name__ == "__main__":
    main()
