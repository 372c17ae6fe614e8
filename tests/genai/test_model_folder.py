"""Stop tokens of a model folder's files, and files as other programs write them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from genai_layer import GenerationConfig, ModelError, Tokenizer
from genai_layer.files import is_file, is_folder, read_counts
from genai_layer.model_folder import read_generation_config

EOS = 2
"""The demo tokenizer's end-of-text id."""


@pytest.fixture
def folder(demo: Path, tmp_path: Path) -> Path:
    """Folder of the demo's tokenizer, without ids in its files."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(demo / name, tmp_path)
    return tmp_path


def stops(folder: Path) -> tuple[int, set[int]]:
    config = read_generation_config(folder, Tokenizer(folder))
    return config.eos_token_id, config.stop_token_ids


@pytest.mark.parametrize(
    ("config", "generation", "expected"),
    [
        ({}, None, (EOS, {EOS})),
        ({"eos_token_id": 7}, None, (7, {7})),
        ({"eos_token_id": [0, 2]}, None, (0, {0, 2})),
        ({"eos_token_id": [0, 2]}, {}, (0, {0, 2})),
        ({"eos_token_id": [0, 2]}, {"eos_token_id": None}, (0, {0, 2})),
        ({"eos_token_id": [0, 2]}, {"eos_token_id": []}, (0, {0, 2})),
        ({"eos_token_id": [0, 2]}, {"eos_token_id": 5}, (5, {5})),
        ({"eos_token_id": 7}, {"eos_token_id": [5, 6]}, (5, {5, 6})),
        ({"eos_token_id": []}, {"eos_token_id": []}, (EOS, {EOS})),
        ({"eos_token_id": [3.0, 2]}, {"eos_token_id": []}, (3, {3, 2})),
        ({"text_config": {"eos_token_id": [1, 106]}}, None, (1, {1, 106})),
        ({"eos_token_id": [9], "text_config": {"eos_token_id": [1, 106]}}, None, (9, {9})),
    ],
)
def test_stop_tokens_are_those_of_the_generation_else_all_of_the_model_else_the_tokenizers(
    folder: Path, config: dict[str, Any], generation: dict[str, Any] | None, expected: Any
) -> None:
    """Values of transformers 4.57.6 and 5.24.0, except that some id always ends a text."""
    (folder / "config.json").write_text(json.dumps(config))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    assert stops(folder) == expected


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("wrong", ["</s>", -1])
def test_a_wrong_stop_token_of_a_list_is_named_with_its_file(
    folder: Path, name: str, wrong: object
) -> None:
    """openvino_genai rejects a negative id when it generates; transformers never meets it."""
    (folder / name).write_text(json.dumps({"eos_token_id": [wrong, 2]}))
    with pytest.raises(ModelError, match=rf"/{name}: .*{wrong!r}"):
        stops(folder)


def test_every_json_file_may_begin_with_a_byte_order_mark(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "template"}))
    for file in (*demo.glob("*.json"), tmp_path / "chat_template.json"):
        (tmp_path / file.name).write_text(file.read_text(), encoding="utf-8-sig")
    assert (tmp_path / "tokenizer.json").read_bytes().startswith(b"\xef\xbb\xbf")
    assert stops(tmp_path) == (EOS, {EOS})
    made, plain = Tokenizer(tmp_path), Tokenizer(demo)
    assert made.get_vocab() == plain.get_vocab()
    assert made.chat_template == "template"


@pytest.mark.parametrize("name", ["max_new_tokens", "top_k", "num_beams", "num_assistant_tokens"])
def test_integers_may_be_written_as_floats(tmp_path: Path, name: str) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({name: 3.0, "eos_token_id": [5.0, 6], "temperature": 2.0}))
    config = GenerationConfig(path)
    assert (getattr(config, name), config.temperature) == (3, 2.0)
    assert (config.eos_token_id, config.stop_token_ids) == (5, {5, 6})
    path.write_text(json.dumps({name: 3.5}))
    with pytest.raises(ModelError, match=f"{name} = 3.5"):
        GenerationConfig(path)
    path.write_text(json.dumps({"count": 3.0}))
    assert read_counts(path, {"count": 1}) == {"count": 3}


def test_a_special_id_may_be_written_as_a_float(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"bos_token_id": 1.0}))
    assert Tokenizer(folder).get_bos_token_id() == 1


def test_a_folder_may_have_a_name_that_is_not_utf_8(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model-\udcff"
    shutil.copytree(demo, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    assert Tokenizer(folder).get_eos_token_id() == EOS


def test_a_path_that_names_of_files_cannot_express_is_named_as_that() -> None:
    """Bytes of another encoding, which Python keeps as lone surrogates, remain possible."""
    with pytest.raises(ModelError, match=r"^'/d\\ud800': names of files in utf-8 lack '\\ud800'; "):
        is_folder(Path("/d\ud800"))
    assert not is_folder(Path("/d\udce9"))


def test_a_path_that_the_locale_cannot_express_gets_a_remedy(monkeypatch) -> None:
    message = r"^'/d\\xe9mo': .* in ascii lack '\\xe9'; set LC_ALL=C.UTF-8"
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda path: str(path).encode("ascii"))
        with pytest.raises(ModelError, match=message):
            is_file(Path("/d\u00e9mo"))
