"""Model folders that both packages read."""

from __future__ import annotations

import shutil
from pathlib import Path

import openvino as ov
import pytest


@pytest.fixture(scope="session")
def genai_folder(demo: Path, demo_ir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the demo model, with the tokenizer's models."""
    convert = pytest.importorskip("openvino_tokenizers").convert_tokenizer
    transformers = pytest.importorskip("transformers")
    target = tmp_path_factory.mktemp("genai")
    for file in (*demo.glob("*.json"), demo_ir, demo_ir.with_suffix(".bin")):
        shutil.copy(file, target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(target)
    models = convert(tokenizer, with_detokenizer=True)
    for name, model in zip(("tokenizer", "detokenizer"), models, strict=True):
        ov.save_model(model, target / f"openvino_{name}.xml")
    return target
