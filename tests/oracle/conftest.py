"""Model folders that both packages read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.oracle.tokenizer_models import restore_tokenizer

TOKENIZER = Path(__file__).resolve().parents[1] / "goldens" / "tokenizers" / "demo.json.xz"


@pytest.fixture(scope="session")
def genai_folder(demo: Path, demo_ir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the demo model, with the tokenizer's models as openvino_tokenizers wrote them.

    The golden models have a chat template of their own, which the folder's replaces.
    """
    target = tmp_path_factory.mktemp("genai")
    for file in (*demo.glob("*.json"), demo_ir, demo_ir.with_suffix(".bin")):
        shutil.copy(file, target)
    restore_tokenizer(TOKENIZER, target)
    template = json.loads((demo / "tokenizer_config.json").read_text())["chat_template"]
    xml = ElementTree.parse(target / "openvino_tokenizer.xml")
    for element in xml.iter("chat_template"):
        element.set("value", template)
    xml.write(target / "openvino_tokenizer.xml")
    return target
