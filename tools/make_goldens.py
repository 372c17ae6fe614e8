"""Golden files of tests/goldens: results of independent implementations for two models.

For llama-8m and the demo model the real exporter writes OpenVINO IR; logits and greedy tokens are
those of transformers (for the folder) and of the real OpenVINO (for the IR), both in f32. An IR is
stored without its weights: as compressed XML, and a list that maps bytes of the ``.bin`` to tensors
of the checkpoint.

Needs PyTorch, transformers, optimum-intel and openvino, which only such scripts need:

    pip install torch==2.13.0 "transformers==4.57.6" "optimum-intel[openvino]==1.27.0"
    python tools/make_goldens.py            # from the checkout, about two minutes
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ROOT / "tests" / "goldens"
MAX_PROMPT_LEN = 256
PROMPTS = (1, 7, 100, MAX_PROMPT_LEN)
GREEDY_TOKENS = 64
QUESTION = "What is an NPU?"
INLINE_BYTES = 1 << 16


def load_llama_8m() -> Any:
    """Import the tests' module that writes llama-8m."""
    spec = importlib.util.spec_from_file_location("llama_8m", GOLDENS / "llama_8m.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prompts(vocabulary: int) -> dict[int, np.ndarray]:
    """Draw the token ids of each prompt, i64 [1, n]."""
    random = np.random.RandomState(11)
    low = min(10, vocabulary - 1)
    return {n: random.randint(low, vocabulary, (1, n)).astype(np.int64) for n in PROMPTS}


def greedy_prompt(folder: Path, ids: dict[int, np.ndarray]) -> np.ndarray:
    """Return the ids before greedy decoding, i64 [1, n]: a question if the model is trained.

    After random tokens a trained model repeats one token forever, which would be a weak test.
    """
    if not (folder / "tokenizer.json").exists():
        return ids[7]
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    turn = [{"role": "user", "content": QUESTION}]
    text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return np.array([tokenizer(text, add_special_tokens=False).input_ids], np.int64)


def run_transformers(
    folder: Path, ids: dict[int, np.ndarray], question: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the last token's logits of each prompt, and greedy tokens, of transformers in f32."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found: dict[str, np.ndarray] = {}
    with torch.inference_mode():
        for n, tokens in ids.items():
            found[f"logits_{n}"] = model(torch.tensor(tokens)).logits[0, -1].numpy()
        sequence = torch.tensor(question)
        for _ in range(GREEDY_TOKENS):
            following = model(sequence).logits[:, -1].argmax(-1, keepdim=True)
            sequence = torch.cat([sequence, following], 1)
    found["greedy"] = sequence[0, question.shape[1] :].numpy()
    return found


def run_openvino(
    xml: Path, ids: dict[int, np.ndarray], question: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the same results of the real OpenVINO in f32, with an f32 cache."""
    import openvino as ov

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }
    request = ov.Core().compile_model(xml, "CPU", config).create_infer_request()

    def infer(tokens: np.ndarray, past: int) -> np.ndarray:
        n = tokens.shape[1]
        request.infer(
            {
                "input_ids": tokens,
                "attention_mask": np.ones((1, past + n), np.int64),
                "position_ids": np.arange(past, past + n, dtype=np.int64)[None],
                "beam_idx": np.zeros(1, np.int32),
            }
        )
        return np.array(request.get_tensor("logits").data[0, -1])

    found: dict[str, np.ndarray] = {}
    for n, tokens in ids.items():
        request.reset_state()
        found[f"logits_{n}"] = infer(tokens, 0)
    request.reset_state()
    logits = infer(question, 0)
    greedy: list[int] = []
    for past in range(question.shape[1], question.shape[1] + GREEDY_TOKENS):
        greedy.append(int(logits.argmax()))
        logits = infer(np.array([[greedy[-1]]], np.int64), past)
    found["greedy"] = np.array(greedy)
    return found


def read_safetensors(path: Path) -> dict[str, bytes]:
    """Read the tensors of a file, as bytes."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    begin = 8 + length
    return {
        name: data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]]
        for name, entry in header.items()
        if name != "__metadata__"
    }


def describe_weights(bin_file: Path, tensors: dict[str, bytes]) -> dict[str, Any]:
    """Map the bytes of an IR's weights to tensors; the remaining bytes are stored."""
    content = bin_file.read_bytes()
    places: list[tuple[int, str]] = []
    for name, data in tensors.items():
        at = content.find(data)
        if at >= 0:
            places.append((at, name))
    parts: list[dict[str, str]] = []
    end = 0
    for at, name in sorted(places):
        if at < end:
            continue
        if at > end:
            parts.append({"bytes": base64.b64encode(content[end:at]).decode()})
        parts.append({"tensor": name})
        end = at + len(tensors[name])
    parts.append({"bytes": base64.b64encode(content[end:]).decode()})
    inline = sum(len(part.get("bytes", "")) for part in parts)
    if inline > INLINE_BYTES:
        raise SystemExit(f"{bin_file}: {inline} bytes belong to no tensor of the checkpoint")
    return {"sha256": hashlib.sha256(content).hexdigest(), "parts": parts}


def make(name: str, folder: Path, work: Path) -> None:
    """Write the golden files of one model."""
    print(f"{name}: exporting")
    ir = work / f"{name}-ir"
    exporter = Path(sys.executable).with_name("optimum-cli")
    task = ["--task", "text-generation-with-past", "--weight-format", "fp16"]
    subprocess.run(
        [exporter, "export", "openvino", "-m", folder, *task, ir],
        check=True,
        env={"HF_HUB_OFFLINE": "1", "PATH": str(exporter.parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    tensors = read_safetensors(folder / "model.safetensors")
    weights = describe_weights(ir / "openvino_model.bin", tensors)
    xml = (ir / "openvino_model.xml").read_bytes()
    (GOLDENS / f"{name}_ir.xml.xz").write_bytes(lzma.compress(xml, preset=9))
    (GOLDENS / f"{name}_ir_weights.json").write_text(json.dumps(weights, indent=1) + "\n")
    ids = prompts(json.loads((folder / "config.json").read_text())["vocab_size"])
    question = greedy_prompt(folder, ids)
    recorded = {f"prompt_{n}": tokens for n, tokens in ids.items()}
    recorded["greedy_prompt"] = question
    for oracle, found in (
        ("hf", run_transformers(folder, ids, question)),
        ("ov", run_openvino(ir / "openvino_model.xml", ids, question)),
    ):
        recorded |= {f"{oracle}_{key}": value for key, value in found.items()}
        print(
            f"{name}: {oracle} greedy {found['greedy'][:12]} {len(set(found['greedy']))} distinct"
        )
    np.savez_compressed(GOLDENS / f"{name}.npz", **recorded)


def main() -> None:
    """Write all golden files, or those of the named models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["llama_8m", "demo"])
    models = parser.parse_args().models
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        for name in models:
            if name == "demo":
                folder = ROOT / "models" / "demo"
            else:
                folder = load_llama_8m().write_folder(work / name)
                # The exporter requires a tokenizer; the demo model's is used.
                for file in (ROOT / "models" / "demo").glob("*token*.json"):
                    shutil.copy(file, folder)
            make(name, folder, work)


if __name__ == "__main__":
    main()
