"""A folder without tokenizer.json has the tokenizer of its openvino_tokenizer.xml."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from genai_layer import Tokenizer
from genai_layer.errors import ModelError


def test_a_folder_with_models_alone_is_a_tokenizer(golden: Any, tmp_path: Path) -> None:
    models = golden("qwen2")
    made = Tokenizer(models.write(tmp_path))
    special = models.results["special"]
    assert [made.get_eos_token_id(), made.get_eos_token()] == special["eos"]
    assert [made.get_pad_token_id(), made.get_pad_token()] == special["pad"]
    assert made.chat_template == models.results["chat_template"]
    ids = made.encode("Hello, world!").input_ids.data[0].tolist()
    assert ids == models.results["ids"]["Hello, world!"][0]
    assert made.decode(ids) == "Hello, world!"


def test_the_models_override_the_other_files(golden: Any, tmp_path: Path) -> None:
    models = golden("qwen2")
    models.write(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 5, "bos_token_id": 6}))
    (tmp_path / "chat_template.jinja").write_text("other")
    made = Tokenizer(tmp_path)
    assert [made.get_eos_token_id(), made.get_eos_token()] == models.results["special"]["eos"]
    assert made.get_bos_token_id() == 6
    assert made.chat_template == models.results["chat_template"]


def test_a_tokenizer_of_two_texts_encodes_pairs_with_its_own_length_and_sides(
    golden: Any, tmp_path: Path
) -> None:
    models = golden("bert_pairs")
    made = Tokenizer(models.write(tmp_path), add_second_input=True)
    assert made.model_max_length == 64
    assert made.padding_side == "left"
    for first, second, ids, cut in models.results["pairs"]:
        assert made.encode([[first, second]]).input_ids.data.tolist() == [ids]
        padded = made.encode([[first, second]], pad_to_max_length=True, truncation=True)
        assert padded.input_ids.data.tolist() == [cut]


def test_ids_of_special_tokens_are_those_of_the_settings(golden: Any, tmp_path: Path) -> None:
    golden("bert").write(tmp_path)
    listed = {"422": {"content": "<end>"}, "37": {"content": "[CLS]"}}
    settings = {"added_tokens_decoder": listed, "eos_token": "<end>", "bos_token": "[CLS]"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    made = Tokenizer(tmp_path)
    assert (made.get_eos_token_id(), made.get_bos_token_id()) == (422, 37)


def test_tokenizer_json_comes_first(golden: Any, demo: Path, tmp_path: Path) -> None:
    golden("bert").write(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((demo / "tokenizer.json").read_bytes())
    assert Tokenizer(tmp_path).get_vocab() == Tokenizer(demo).get_vocab()


def test_beside_tokenizer_json_the_settings_of_the_models_count(
    golden: Any, demo: Path, tmp_path: Path
) -> None:
    models = golden("bert_pairs")
    models.write(tmp_path)
    shutil.copy(demo / "tokenizer.json", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"padding_side": "right"}))
    (tmp_path / "openvino_detokenizer.xml").unlink()
    made = Tokenizer(tmp_path)
    assert (made.padding_side, made.model_max_length) == ("left", 64)
    assert made.get_pad_token_id() == models.results["special"]["pad"][0]
    assert made.chat_template == models.results["chat_template"]


def test_the_settings_can_be_stored(golden: Any, tmp_path: Path) -> None:
    made = Tokenizer(golden("bert").write(tmp_path))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "tokenizer.json").write_text(made.to_json())
    copy = Tokenizer(tmp_path / "copy")
    assert copy.encode("a b").input_ids.data.tolist() == made.encode("a b").input_ids.data.tolist()


@pytest.mark.parametrize("missing", ["openvino_tokenizer.bin", "openvino_detokenizer.xml"])
def test_a_missing_file_is_named(golden: Any, tmp_path: Path, missing: str) -> None:
    models = golden("demo")
    models.write(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(ModelError, match=f"{missing}: the file is missing"):
        Tokenizer(tmp_path)


def test_a_folder_without_tokenizer_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no tokenizer.json and no openvino_tokenizer.xml"):
        Tokenizer(tmp_path)
