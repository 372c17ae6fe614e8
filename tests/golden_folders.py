"""Complete folders of the golden models of images, and the modules that write them.

A test module imports the fixtures under the names that its tests have for them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDENS = Path(__file__).resolve().parent / "goldens"
VISION = GOLDENS / "vision" / "folder.py"
EMBEDDING = GOLDENS / "embedding" / "folder.py"
RESTORE = GOLDENS / "exported" / "restore.py"

Load = Callable[[Path], Any]


@pytest.fixture(scope="module")
def vision_tools(load_module: Load) -> Any:
    return load_module(VISION)


@pytest.fixture(scope="module")
def vision_folder(load_module: Load, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny Qwen2-VL."""
    restore = load_module(RESTORE).restore
    return load_module(VISION).write(restore, tmp_path_factory.mktemp("vision"))


@pytest.fixture(scope="module")
def embedding_tools(load_module: Load) -> Any:
    return load_module(EMBEDDING)


@pytest.fixture(scope="module")
def embedding_folder(load_module: Load, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny Qwen3-VL for embeddings."""
    restore, vision = load_module(RESTORE).restore, load_module(VISION)
    return load_module(EMBEDDING).write(restore, vision, tmp_path_factory.mktemp("embedding"))


@pytest.fixture(scope="module")
def pipeline_folders(
    load_module: Load, vision_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Folders of tiny models of texts, of ranks, of speech (Whisper), and of images (Qwen2-VL)."""
    restore = load_module(RESTORE).restore
    folders = {"vision": vision_folder}
    for kind, name in (("texts", "bert"), ("ranks", "xlmr")):
        folders[kind] = folder = tmp_path_factory.mktemp(name)
        restore(GOLDENS / "texts", name, folder)
        shutil.copy(GOLDENS / "rag" / "encoder.json", folder / "tokenizer.json")
        (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]"}))
        (folder / "config.json").write_text(json.dumps({"model_type": name}))
    parts = [
        restore(GOLDENS / "whisper", f"{part}_fp16", tmp_path_factory.mktemp(part))
        for part in ("encoder", "decoder")
    ]
    speech = tmp_path_factory.mktemp("whisper")
    load_module(GOLDENS / "whisper" / "folder.py").write(*parts, speech)
    return folders | {"speech": speech}
