"""Shared functions of the scripts that write golden IRs: export, and compact storage.

The XML is stored, and a recipe of the ``.bin``: ``tests/goldens/exported/restore.py`` draws weights
and scales again, and OpenVINO's golden results are always those of the restored IR.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import lzma
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GOLDENS = ROOT / "tests" / "goldens"
EXPORTED = GOLDENS / "exported"

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
"""Makes OpenVINO's CPU plugin compute in the IR's element types."""


PRECISIONS = {"fp16": ["--weight-format", "fp16"], "int8": ["--weight-format", "int8"]}
"""Options of the exporter."""


def load_module(path: Path) -> Any:
    """Import a file outside of any package, e.g. one that tests use, too."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


restore = load_module(EXPORTED / "restore.py")


def export(folder: Path, task: str, options: list[str], target: Path) -> None:
    """Run the real exporter on a Hugging Face folder."""
    exporter = Path(sys.executable).with_name("optimum-cli")
    asked = ["--task", task, *options]
    subprocess.run(
        [exporter, "export", "openvino", "-m", folder, *asked, target],
        check=True,
        env={"HF_HUB_OFFLINE": "1", "PATH": str(exporter.parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def keep(ir: Path, target: Path, name: str, work: Path, kept: int = restore.KEPT_BYTES) -> Path:
    """Write an IR's golden files; return the path of the IR restored from them.

    Args:
        ir: the ``.xml``.
        target: the folder of golden files.
        name: name of the golden files.
        work: the folder to restore to.
        kept: constants of at most ``kept`` bytes are stored unchanged.
    """
    xml, content = ir.read_bytes(), ir.with_suffix(".bin").read_bytes()
    described = {"size": len(content), "parts": recipe(xml, content, kept)}
    packed = json.dumps(described).encode()
    (target / f"{name}.xml.xz").write_bytes(lzma.compress(xml, preset=9))
    (target / f"{name}.json.xz").write_bytes(lzma.compress(packed, preset=9))
    return restore.restore(target, name, work / f"{name}-restored")


def keep_tokenizer(folder: Path, target: Path) -> None:
    """Convert a folder's tokenizer to models, which openvino_genai needs.

    Args:
        folder: has the ``tokenizer.json``; the models are written to it.
        target: the folder of golden files, for ``tests/golden_tokenizers.py``.
    """
    import openvino as ov
    from openvino_tokenizers import convert_tokenizer
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    files: dict[str, str] = {}
    converted = convert_tokenizer(tokenizer, with_detokenizer=True)
    for model, name in zip(converted, ("tokenizer", "detokenizer"), strict=True):
        xml = folder / f"openvino_{name}.xml"
        ov.save_model(model, xml)
        for path in (xml, xml.with_suffix(".bin")):
            files[path.name] = base64.b64encode(path.read_bytes()).decode()
    packed = json.dumps({"files": files}).encode()
    (target / "tokenizer.json.xz").write_bytes(lzma.compress(packed, preset=9))


def recipe(xml: bytes, content: bytes, kept: int = restore.KEPT_BYTES) -> list[dict[str, Any]]:
    """Return the recipe of a ``.bin``: a part for each constant; see ``restore.py``."""
    parts: list[dict[str, Any]] = []
    seen: set[int] = set()
    for layer in ET.fromstring(xml).iter("layer"):
        data = layer.find("data")
        if layer.get("type") != "Const" or data is None:
            continue
        offset, size = int(data.get("offset", "0")), int(data.get("size", "0"))
        if offset in seen or not size:
            continue
        seen.add(offset)
        element = data.get("element_type", "")
        part = restore.describe(content[offset : offset + size], element, kept)
        parts.append({"offset": offset, **part})
    return sorted(parts, key=lambda part: part["offset"])
