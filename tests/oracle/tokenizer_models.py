"""Models of tokenizers, which openvino_genai reads instead of a ``tokenizer.json``."""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path


def restore_tokenizer(golden: Path, folder: Path) -> None:
    """Write the models of a golden file, which openvino_tokenizers made, to a folder."""
    for name, data in json.loads(lzma.decompress(golden.read_bytes()))["files"].items():
        (folder / name).write_bytes(base64.b64decode(data))
