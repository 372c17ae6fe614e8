"""Prompts of chat templates, compared to transformers' in tests/goldens/templates.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from genai_layer import Tokenizer
from genai_layer.testing.toy import write_toy_folder

GOLDEN = json.loads((Path(__file__).parents[2] / "goldens" / "templates.json").read_text())


@pytest.mark.parametrize("case", GOLDEN["folders"], ids=lambda case: case["name"])
def test_a_folders_templates_give_the_prompts_of_transformers(
    case: dict[str, Any], tmp_path: Path
) -> None:
    files = dict(case["files"])
    write_toy_folder(tmp_path, chat_template=files.pop("tokenizer_config.json", None))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    tokenizer = Tokenizer(tmp_path)
    for name, tools in (("plain", []), ("tools", [GOLDEN["tool"]])):
        prompt = tokenizer.apply_chat_template(GOLDEN["messages"], True, tools=tools)
        assert prompt == case["prompts"][name]
