"""Golden file tests/goldens/adapters.json: the real openvino_genai's tokens with LoRA adapters.

Adapters are drawn from a seed, written as PEFT does, and passed to openvino_genai's pipeline on its
CPU; the file has the greedy tokens, and the variables that it adds to the model. The pipeline does
not expose the variables, but they are in the IR that the CPU plugin writes to CACHE_DIR.

Needs openvino_genai of openvino's version, and any folder with a tokenizer that it reads (prompts
of tokens do not use it):

    pip install openvino-genai==2026.4.1
    python tools/make_adapter_goldens.py FOLDER       # from the checkout, a minute
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ROOT / "tests" / "goldens"
MODELS = ("llama_fp16", "llama_int4", "gemma2_fp16")
PROMPT = 40
GREEDY_TOKENS = 24
_CACHE_KEY = bytes.fromhex("3060700204083f6f7274787f")
"""Bytes with which OpenVINO obfuscates the IR in its cache (repeated XOR)."""


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _variables(folder: Path) -> list[list[str]]:
    """Read the adapters' variables from the IR of a cache: id, element type and shape."""
    (blob,) = folder.glob("*.blob")
    hidden = np.frombuffer(blob.read_bytes(), np.uint8)
    for first in range(len(_CACHE_KEY)):
        key = np.roll(np.frombuffer(_CACHE_KEY, np.uint8), first)
        text = (hidden ^ np.resize(key, hidden.size)).tobytes()
        if b"lora_state" in text:
            pattern = rb'variable_id="(lora_[^"]*)" variable_type="(\w+)" variable_shape="([^"]*)"'
            found = re.findall(pattern, text)
            return sorted([part.decode() for part in each] for each in found)
    raise ValueError(f"{blob}: the cache has no IR with adapters")


def answers(name: str, tokenizer: Path, adapters: Any, restore: Any) -> dict[str, Any]:
    """Generate with the real pipeline, once per adapter set."""
    import openvino as ov
    import openvino_genai as genai

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = restore.restore(GOLDENS / "exported", name, folder)
        for each in tokenizer.glob("*token*"):
            shutil.copy(each, folder)
        adapted = adapters.insert_adapters(ov.Core().read_model(path))
        prompt = np.random.RandomState(len(name)).randint(3, 1000, (1, PROMPT))
        inputs = genai.TokenizedInputs(ov.Tensor(prompt), ov.Tensor(np.ones_like(prompt)))
        found: dict[str, Any] = {"prompt": prompt[0].tolist(), "tokens": {}, "variables": {}}
        for kind in ("f32", "f16"):
            wishes = {n: wish for n, wish in adapters.WISHES.items() if wish.kind == kind}
            files = {
                wished: [
                    genai.Adapter(
                        adapters.write_adapter(folder / f"{n}{i}.safetensors", adapted, a)
                    )
                    for i, a in enumerate(wish.drawn(adapted))
                ]
                for n, (wished, wish) in enumerate(wishes.items())
            }
            known = genai.AdapterConfig([each for some in files.values() for each in some])
            cache = folder / kind
            pipeline = genai.LLMPipeline(
                folder,
                "CPU",
                adapters=known,
                ATTENTION_BACKEND="SDPA",
                INFERENCE_PRECISION_HINT="f32",
                KV_CACHE_PRECISION="f32",
                DYNAMIC_QUANTIZATION_GROUP_SIZE=0,
                CACHE_DIR=str(cache),
            )
            found["variables"][kind] = _variables(cache)
            for wished, wish in wishes.items():
                config = genai.GenerationConfig(
                    max_new_tokens=GREEDY_TOKENS, ignore_eos=True, do_sample=False
                )
                pairs = list(zip(files[wished], wish.alphas, strict=True))
                config.adapters = genai.AdapterConfig(pairs)
                found["tokens"][wished] = pipeline.generate(inputs, config).tokens[0]
    return found


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tokenizer", type=Path, help="folder with openvino_tokenizer.xml")
    tokenizer = parser.parse_args().tokenizer
    adapters = _load(GOLDENS / "adapters.py")
    restore = _load(GOLDENS / "exported" / "restore.py")
    found = {name: answers(name, tokenizer, adapters, restore) for name in MODELS}
    (GOLDENS / "adapters.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
