"""tokenizer_config.json acts on tokenizer.json as in transformers.

The goldens are from tools/make_tokenizer_setting_goldens.py.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.tokenizer_folders import cases, difference, model_types, texts, write

from genai_layer import ModelError, Tokenizer
from genai_layer.detokenizer import Detokenizer, TextDecoder
from genai_layer.tokenizer_model_types import CLASS_OF_TYPE

FORMS = ("plain", "saved 4", "saved 5")


@pytest.mark.parametrize("name", cases())
def test_a_folder_has_the_tokens_and_texts_of_transformers(tmp_path: Path, name: str) -> None:
    for form in FORMS:
        golden = cases()[name].get(form)
        if golden is None:
            continue  # transformers 4 cannot read lists of extra tokens
        made = Tokenizer(write(golden, tmp_path / form))
        pairs = zip(texts(), golden["rows"], strict=True)
        assert not [d for text, row in pairs if (d := difference(made, row, text))], form
        ids = [made.get_bos_token_id(), made.get_eos_token_id()]
        assert ids == [-1 if number is None else number for number in golden["special"][:2]]
        assert made.padding_side == golden["side"]


PIECES = [*" '',.n", "n't", "'s", " 'm", "'ve", "re", "x", "é", " '", " n"]


@pytest.mark.parametrize("name", ["gpt2_cleanup", "bert_cleanup", "unigram_cleanup"])
def test_streamed_parts_join_to_the_text_without_the_removed_spaces(
    tmp_path: Path, name: str
) -> None:
    made, draw = Tokenizer(write(cases()[name]["plain"], tmp_path / "folder")), random.Random(7)
    for _ in range(150):
        pieces = draw.choices(PIECES, k=draw.randint(1, 12))
        ids = [int(n) for piece in pieces for n in made.encode(piece).input_ids.data[0]]
        stream = Detokenizer(TextDecoder(made))
        parts = [stream.add(token) for token in ids]
        assert "".join(parts) + stream.flush() == made.decode(ids), pieces


def settings_of(tmp_path: Path, **settings: Any) -> Path:
    folder = write(cases()["llama_plain"]["plain"], tmp_path, "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_class_adds_no_token_that_the_settings_lack(tmp_path: Path) -> None:
    folder = settings_of(tmp_path, tokenizer_class="LlamaTokenizer", bos_token=None)
    made = Tokenizer(folder)
    assert made.encode("").input_ids.data.tolist() == [[]]


def test_a_type_of_model_has_the_class_of_transformers() -> None:
    classes = set(CLASS_OF_TYPE.values())
    golden = {model: name for model, name in model_types().items() if name in classes}
    assert golden == CLASS_OF_TYPE


@pytest.mark.parametrize("number", [5, "5", True])
def test_a_wrong_id_of_an_added_token_is_named(tmp_path: Path, number: object) -> None:
    folder = settings_of(tmp_path, bos_token="<s>")
    (folder / "added_tokens.json").write_text(json.dumps({"<|tool|>": number}))
    with pytest.raises(ModelError, match=r"added_tokens.json: .*'<\|tool\|>'"):
        Tokenizer(folder)


def test_without_settings_tokenizer_json_stands_alone(tmp_path: Path) -> None:
    folder = write(cases()["gpt2_no_prefix_space"]["plain"], tmp_path, "tokenizer.json")
    assert Tokenizer(folder).decode(Tokenizer(folder).encode("a").input_ids.data[0]) == " a"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"extra_special_tokens": "<a>"}, "extra_special_tokens = '<a>': write a list"),
        ({"additional_special_tokens": 5}, "additional_special_tokens = 5: write a list"),
        ({"eos_token": {"content": "<a>", "lstrip": "yes"}}, "token '<a>': "),
        ({"add_bos_token": "false"}, "tokenizer_config.json: add_bos_token = 'false': write true"),
        ({"clean_up_tokenization_spaces": 1}, "clean_up_tokenization_spaces = 1: write true"),
    ],
)
def test_a_broken_setting_is_named(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Tokenizer(settings_of(tmp_path, **settings))
