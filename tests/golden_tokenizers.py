"""Golden tokenizer models of tools/make_tokenizer_goldens.py, as folders and as texts."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from genai_layer.openvino_tokenizer import read_model
from genai_layer.tokenizer_content import TokenizerContent, read_content

GOLDENS = Path(__file__).resolve().parent / "goldens" / "tokenizers"


@dataclass
class Golden:
    """One family: its files, and the results of the real openvino_genai.Tokenizer."""

    files: dict[str, bytes]
    results: dict[str, Any]

    def read(self, **edits: Any) -> TokenizerContent:
        """Read the models; an edit is (old, new) for ``tokenizer`` or ``detokenizer``."""
        texts: dict[str, str] = {}
        for name in ("tokenizer", "detokenizer"):
            texts[name] = self.files[f"openvino_{name}.xml"].decode()
            for old, new in edits.get(name, []):
                assert old in texts[name]
                texts[name] = texts[name].replace(old, new)
        weights = [self.files[f"openvino_{name}.bin"] for name in ("tokenizer", "detokenizer")]
        models = read_model(texts["tokenizer"], weights[0], texts["detokenizer"], weights[1])
        return read_content(models)

    def write(self, folder: Path) -> Path:
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder


def read_golden(path: Path) -> Golden:
    """Read a golden file."""
    found = json.loads(lzma.decompress(path.read_bytes()))
    files = {key: base64.b64decode(data) for key, data in found.pop("files").items()}
    return Golden(files, found)


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Golden]:
    """Return a function that returns the golden models of a family."""
    return lambda name: read_golden(GOLDENS / f"{name}.json.xz")
