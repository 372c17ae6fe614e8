"""Messages that a template does not support, compared to the real openvino_genai.

Skipped unless openvino_genai and openvino_tokenizers are installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden_tokenizers import Golden
from tests.templates import TEMPLATES, chat_of

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")
pytest.importorskip("openvino_tokenizers")
pytestmark = pytest.mark.oracle

TOOL = {"type": "function", "function": {"name": "fn", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def folder(golden: Callable[[str], Golden], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder whose tokenizer model has no chat template."""
    target = golden("demo").write(tmp_path_factory.mktemp("templates"))
    xml = ElementTree.parse(target / "openvino_tokenizer.xml")
    for parent in xml.iter():
        for element in parent.findall("chat_template"):
            parent.remove(element)
    xml.write(target / "openvino_tokenizer.xml")
    return target


@pytest.fixture(scope="module")
def tokenizers(folder: Path) -> tuple[Any, Any]:
    return ours.Tokenizer(folder), theirs.Tokenizer(folder)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "first characters"])
@given(letters=st.text("SUA", min_size=1, max_size=5))
@settings(deadline=None, max_examples=40)
def test_prompts_are_equal(tokenizers: tuple[Any, Any], name: str, letters: str) -> None:
    chat, template = chat_of(letters), TEMPLATES[name]
    tools = [TOOL] if name == "tools" else []
    prompts = [
        one.apply_chat_template(chat, True, chat_template=template, tools=tools)
        for one in tokenizers
    ]
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize("name", ["plain", "no system"])
def test_both_describe_tools_before_the_user_message(tokenizers: Any, name: str) -> None:
    for one in tokenizers:
        prompt = one.apply_chat_template(
            chat_of("SU"), True, chat_template=TEMPLATES[name], tools=[TOOL]
        )
        assert prompt.index("S0") < prompt.index('"fn"') < prompt.index("U1")


def test_the_template_named_default_is_that_of_chats_without_tools(folder: Path) -> None:
    named = [{"name": name, "template": name} for name in ("tool_use", "default", "rag")]
    for listed, expected in ((named, "default"), (named[::2], "")):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": listed}))
        for package in (ours, theirs):
            assert package.Tokenizer(folder).get_original_chat_template() == expected


def test_the_chat_template_is_a_property_that_can_be_set(folder: Path) -> None:
    for package in (ours, theirs):
        tokenizer = package.Tokenizer(folder)
        tokenizer.chat_template = "{{ messages[0].content }}!"
        assert tokenizer.chat_template == tokenizer.get_original_chat_template()
        assert tokenizer.apply_chat_template(chat_of("U"), True) == "U0!"
