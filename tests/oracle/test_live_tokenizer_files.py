"""Files of a tokenizer's folder: this stack and the real openvino_genai, live.

The settings of transformers reach the real package through folders that openvino_tokenizers wrote.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden_tokenizers import Golden
from tests.tokenizer_folders import cases, texts, write

import genai_layer

openvino_genai = pytest.importorskip("openvino_genai")
pytestmark = pytest.mark.oracle

PACKAGES = (openvino_genai, genai_layer)
NAMES = ("bos", "eos", "pad")
SETTINGS, MAP, CONFIG = "tokenizer_config.json", "special_tokens_map.json", "config.json"
TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LISTED = {str(number): {"content": token} for number, token in enumerate(TOKENS)}

Source = tuple[str, dict[str, Any]]
"""File, or "rt_info", and its entries."""


def special(*names: str) -> dict[str, Source]:
    """Return the sources of special tokens; each has all of them."""

    def entries(suffix: str, value: object) -> dict[str, Any]:
        return {f"{name}_{suffix}": value for name in names}

    listed = {"added_tokens_decoder": LISTED}
    return {
        "rt_info": ("rt_info", entries("token_id", 5)),
        "no id in rt_info": ("rt_info", entries("token_id", -1)),
        "config": (CONFIG, entries("token_id", 6)),
        "config, as a float": (CONFIG, entries("token_id", 6.0)),
        "config, a list": (CONFIG, entries("token_id", [6, 7])),
        "map": (MAP, entries("token", {"content": TOKENS[1]})),
        "settings": (SETTINGS, entries("token", TOKENS[0])),
        "settings, listed": (SETTINGS, entries("token", TOKENS[2]) | listed),
        "list": (SETTINGS, listed),
    }


TEMPLATES: dict[str, Source] = {
    "rt_info": ("rt_info", {"chat_template": "rt_info"}),
    "empty rt_info": ("rt_info", {"chat_template": ""}),
    **{
        file: (file, {"chat_template": file})
        for file in ("chat_template.json", "processor_config.json", SETTINGS)
    },
    "empty file": ("chat_template.json", {"chat_template": ""}),
    "named": (SETTINGS, {"chat_template": [{"name": "default", "template": "named"}]}),
    "jinja": ("chat_template.jinja", {"": "jinja"}),
}


@pytest.fixture(scope="module")
def bare(golden: Callable[[str], Golden], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of tokenizer models whose rt_info has neither special tokens nor a template."""
    folder = golden("demo").write(tmp_path_factory.mktemp("bare"))
    path = folder / "openvino_tokenizer.xml"
    path.write_text(re.sub(r"<(chat_template|\w+_token_id) value=.*/>", "", path.read_text()))
    return folder


def fill(folder: Path, *sources: Source) -> Path:
    """Add files, or entries of the rt_info, to a folder."""
    for file, entries in sources:
        path = folder / file
        if file == "rt_info":
            xml = folder / "openvino_tokenizer.xml"
            added = "".join(f'<{name} value="{value}" />' for name, value in entries.items())
            xml.write_text(
                xml.read_text().replace("</rt_info>\n</net>", f"{added}</rt_info>\n</net>")
            )
        elif "" in entries:
            path.write_text(entries[""])
        else:
            before = json.loads(path.read_text()) if path.exists() else {}
            path.write_text(json.dumps(before | entries))
    return folder


def described(tokenizer: Any) -> list[Any]:
    """Return the ids and texts of the special tokens, and the template."""
    found = [
        getattr(tokenizer, f"get_{name}_token{kind}")() for name in NAMES for kind in ("_id", "")
    ]
    return [*found, tokenizer.chat_template]


def ours_as_theirs(theirs: list[Any], ours: list[Any]) -> list[Any]:
    """Return ours, but without an id that only a text's place in the vocabulary gives."""
    ids = [
        -1 if a == -1 and b in (0, 1, 2) else b
        for a, b in zip(theirs[:6:2], ours[:6:2], strict=True)
    ]
    return [ids[0], ours[1], ids[1], ours[3], ids[2], *ours[5:]]


@pytest.mark.parametrize("sources", [special("eos"), special("bos", "pad"), TEMPLATES])
def test_of_two_sources_the_same_one_counts_with_and_without_tokenizer_json(
    bare: Path, demo: Path, tmp_path: Path, sources: dict[str, Source]
) -> None:
    different: list[Any] = []
    for number, pair in enumerate(itertools.combinations_with_replacement(sources, 2)):
        folder = shutil.copytree(bare, tmp_path / str(number))
        fill(folder, *(sources[name] for name in pair[: 1 + (pair[0] != pair[1])]))
        theirs, without = (described(package.Tokenizer(folder)) for package in PACKAGES)
        shutil.copy(demo / "tokenizer.json", folder)
        for ours in (without, described(genai_layer.Tokenizer(folder))):
            if ours_as_theirs(theirs, ours) != theirs:
                different.append([pair, theirs, ours])
    assert not different


@pytest.mark.parametrize("name", [name for name, forms in cases().items() if "converted" in forms])
def test_a_converted_folder_has_the_real_tokens_and_texts(tmp_path: Path, name: str) -> None:
    folder = write(cases()[name]["converted"], tmp_path / "folder")
    theirs, ours = (package.Tokenizer(folder) for package in PACKAGES)
    different: set[str] = set()
    for text in texts():
        ids = theirs.encode(text).input_ids.data[0].tolist()
        found = ours.encode(text).input_ids.data[0].tolist()
        decoded = [
            [owner.decode(ids, skip_special_tokens=skip) for skip in (True, False)]
            for owner in (theirs, ours)
        ]
        if found != ids or decoded[0] != decoded[1]:
            different.add(text)
    assert different == DIFFERENT.get(name, set())
    assert described(ours)[:6] == described(theirs)[:6]


SPACES = {" Hello  world ", "  <|im_start|>  user\n", "▁a ▁"}
DIFFERENT: dict[str, set[str]] = {
    **{
        name: {"<0xFF>"}  # there, it is a byte
        for name, forms in cases().items()
        if name.startswith(("llama", "code_llama", "gemma")) and "converted" in forms
    },
    "gpt2_prefix_space": {"\n\n\n", "\t tab"},  # there, only letters get a space
    "bert_accents": {"😀👩‍👩‍👧 é e\u0301 한국어", "İstanbul ß"},  # there, accents are removed
    "mpnet": {"<s>", "a<s> b </s>c"},  # there, tokens outside of WordPiece's vocabulary are unknown
    "unigram": SPACES,  # there, several spaces are one
    "unigram_cleanup": SPACES,
    "split_special": {"<s>", "a<s> b </s>c", "  <|im_start|>  user\n"},  # there, it has no effect
}
"""Texts of which openvino_tokenizers makes something else than transformers, whose tokens count."""


def test_a_batch_of_a_converted_folder_is_padded_at_the_side_of_the_graph(tmp_path: Path) -> None:
    folder = write(cases()["llama_class_default"]["converted"], tmp_path / "folder")
    (folder / SETTINGS).write_text(json.dumps({"padding_side": "right"}))
    batches = [package.Tokenizer(folder).encode(["a", "a b c"]) for package in PACKAGES]
    masks = [batch.attention_mask.data.tolist() for batch in batches]
    assert masks[0] == masks[1]
    assert masks[0][0][0] == 0


def test_a_template_that_was_set_is_the_original_one(bare: Path) -> None:
    for package in PACKAGES:
        tokenizer = package.Tokenizer(bare)
        tokenizer.set_chat_template("other")
        assert tokenizer.get_original_chat_template() == "other"


def test_the_end_of_text_id_has_the_real_parameter_name() -> None:
    for package in PACKAGES:
        config = package.GenerationConfig()
        config.set_eos_token_id(tokenizer_eos_token_id=3)
        assert (config.eos_token_id, config.stop_token_ids) == (3, {3})
