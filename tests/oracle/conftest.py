"""Model folders that both packages read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.golden_tokenizers import Golden
from tests.golden_tokenizers import golden as golden


@pytest.fixture(scope="session")
def genai_folder(
    demo: Path,
    demo_ir: Path,
    golden: Callable[[str], Golden],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Folder of the demo model, with the tokenizer's models as openvino_tokenizers wrote them.

    The golden models have a chat template of their own, which the folder's replaces.
    """
    target = golden("demo").write(tmp_path_factory.mktemp("genai"))
    for file in (*demo.glob("*.json"), demo_ir, demo_ir.with_suffix(".bin")):
        shutil.copy(file, target)
    template = json.loads((demo / "tokenizer_config.json").read_text())["chat_template"]
    xml = ElementTree.parse(target / "openvino_tokenizer.xml")
    for element in xml.iter("chat_template"):
        element.set("value", template)
    xml.write(target / "openvino_tokenizer.xml")
    return target
