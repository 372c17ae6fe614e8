"""Golden file tests/goldens/adapter_texts.json: the real LLMPipeline's texts with adapter files.

It runs on its CPU device, with the exporter's IR of the demo model, in f32; the generations are in
tests/goldens/adapter_files.py. Needs openvino_genai of openvino's version, transformers and
openvino_tokenizers:

    pip install openvino-genai==2026.4.1 transformers
    python tools/make_lora_goldens.py       # from the checkout, half a minute
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

from golden_ir import GOLDENS, ROOT, load_module

DEMO = ROOT / "models" / "demo"
EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
    "ATTENTION_BACKEND": "SDPA",
}


def write_model(folder: Path) -> None:
    """Restore the IR of the demo model, and write a tokenizer that openvino_genai reads."""
    import openvino as ov
    from openvino_tokenizers import convert_tokenizer
    from transformers import AutoTokenizer

    data = (DEMO / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    content = bytearray()
    for part in json.loads((GOLDENS / "demo_ir_weights.json").read_text())["parts"]:
        if "tensor" in part:
            first, last = header[part["tensor"]]["data_offsets"]
            content += data[begin + first : begin + last]
        else:
            content += base64.b64decode(part["bytes"])
    (folder / "openvino_model.bin").write_bytes(content)
    xml = lzma.decompress((GOLDENS / "demo_ir.xml.xz").read_bytes())
    (folder / "openvino_model.xml").write_bytes(xml)
    for name in ("config.json", "generation_config.json"):
        (folder / name).write_bytes((DEMO / name).read_bytes())
    made = convert_tokenizer(AutoTokenizer.from_pretrained(str(DEMO)), with_detokenizer=True)
    for kind, model in zip(("tokenizer", "detokenizer"), made, strict=True):
        ov.save_model(model, folder / f"openvino_{kind}.xml")


def answers(folder: Path, files: Any) -> dict[str, Any]:
    """Generate with the real pipeline, step by step and mode by mode."""
    import openvino_genai as genai

    adapters = {name: genai.Adapter(path) for name, path in files.write_files(folder).items()}
    first = files.config_of(genai, files.FIRST, adapters)
    pipeline = genai.LLMPipeline(folder, "CPU", adapters=first, **EXACT)
    said: dict[str, Any] = {"facts": files.facts(genai, adapters), "steps": {}, "modes": {}}
    for name, step in files.STEPS.items():
        said["steps"][name] = files.ask(genai, pipeline, step, adapters)
    plain = genai.LLMPipeline(folder, "CPU", **EXACT)
    said["plain"] = files.ask(genai, plain, files.Step(), adapters)
    for mode in files.MODES:
        pairs = [(adapters[name], alpha) for name, alpha in files.FIXED]
        config = genai.AdapterConfig(pairs, getattr(genai.AdapterConfig.Mode, mode))
        pipeline = genai.LLMPipeline(folder, "CPU", adapters=config, **EXACT)
        said["modes"][mode] = files.ask(genai, pipeline, files.Step(), adapters)
    return said


def main() -> None:
    """Write the file."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    with tempfile.TemporaryDirectory() as place:
        write_model(Path(place))
        said = answers(Path(place), load_module(GOLDENS / "adapter_files.py"))
    text = json.dumps(said, indent=1, ensure_ascii=False)
    (GOLDENS / "adapter_texts.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
