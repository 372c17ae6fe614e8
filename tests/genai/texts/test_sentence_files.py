"""Files of sentence-transformers, read as it reads them.

tools/make_sentence_goldens.py wrote its settings for each folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from genai_layer import ModelError, TextEmbeddingPipeline
from genai_layer.texts.config import EmbeddingConfig, PoolingType
from genai_layer.texts.sentence_files import complete

SAID: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "goldens" / "sentences" / "files.json").read_text()
)
PLAIN: dict[str, Any] = SAID["plain"]["files"]
POOLING, LENGTHS = "1_Pooling/config.json", "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
LIMIT = 120
"""Maximum length in the tokenizer's settings, as in the golden files."""


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in {"config.json": {"max_position_embeddings": 130}, **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("name", SAID)
def test_settings_are_those_of_sentence_transformers(tmp_path: Path, name: str) -> None:
    expected, files = SAID[name], SAID[name]["files"]
    config, modes = complete(EmbeddingConfig(), write(tmp_path, files), LIMIT)
    assert list(modes) == expected["modes"]
    assert config.normalize == expected["normalize"]
    assert config.max_length == expected["max_length"]
    assert config.query_instruction == expected["encode_query"]
    assert config.embed_instruction == expected["encode_document"]


def test_a_byte_order_mark_of_any_file_has_no_effect(tmp_path: Path) -> None:
    files = SAID["prompts: both"]["files"] | {LENGTHS: {"max_seq_length": 9}}
    folder = write(tmp_path, files)
    expected = complete(EmbeddingConfig(), folder, LIMIT)
    for name in files:
        (folder / name).write_text(json.dumps(files[name]), encoding="utf-8-sig")
    assert complete(EmbeddingConfig(), folder, LIMIT) == expected


def test_parameters_of_the_caller_precede_the_files_even_if_they_are_defaults(
    tmp_path: Path,
) -> None:
    files = PLAIN | {
        LENGTHS: {"max_seq_length": 50},
        PROMPTS: {"prompts": {"query": "how ", "document": "text "}},
    }
    folder = write(tmp_path, files)
    others = EmbeddingConfig(batch_size=2, padding_side="left", pad_to_max_length=True)
    found, modes = complete(others, folder, LIMIT)
    assert modes == ("mean",)
    assert found.model_dump() == {
        **others.model_dump(),
        "max_length": 50,
        "query_instruction": "how ",
        "embed_instruction": "text ",
    }
    for name in ("max_length", "normalize", "query_instruction", "embed_instruction"):
        given = EmbeddingConfig()
        setattr(given, name, getattr(given, name))
        found, _ = complete(given, folder, LIMIT)
        assert getattr(found, name) == getattr(EmbeddingConfig(), name), name
    assert complete(EmbeddingConfig(pooling_type=PoolingType.CLS), folder, LIMIT)[1] == ("cls",)


def test_without_the_files_the_defaults_are_openvino_genais(tmp_path: Path) -> None:
    config = EmbeddingConfig()
    assert complete(config, write(tmp_path, {}), LIMIT) == (config, ("cls",))


@pytest.mark.parametrize(("limit", "positions", "expected"), [(None, 90, 90), (80, None, 80)])
def test_the_least_limit_is_the_length_that_no_file_tells(
    tmp_path: Path, limit: int | None, positions: int | None, expected: int
) -> None:
    folder = write(tmp_path, PLAIN | {"config.json": {"max_position_embeddings": positions}})
    assert complete(EmbeddingConfig(), folder, limit)[0].max_length == expected


def modules(*kinds: str) -> list[dict[str, str]]:
    return [
        {
            "type": kind if "/" in kind else f"sentence_transformers.models.{kind}",
            "path": f"{n}_{kind}",
        }
        for n, kind in enumerate(kinds)
    ]


UNSUPPORTED = {
    r"modules\.json: not a list of modules": {"modules.json": {"a": 1}},
    "modules Transformer, Pooling, Dense, Normalize are not supported; use": {
        "modules.json": modules("Transformer", "Pooling", "Dense", "Normalize")
    },
    "modules Transformer, WeightedLayerPooling, Pooling are": {
        "modules.json": modules("Transformer", "WeightedLayerPooling", "Pooling")
    },
    "modules Transformer, Pooling, Pooling are": {
        "modules.json": modules("Transformer", "Pooling", "Pooling")
    },
    "modules StaticEmbedding are": {"modules.json": modules("StaticEmbedding")},
    "modules own/code.Transformer, Pooling are": {
        "modules.json": modules("own/code.Transformer", "Pooling")
    },
    r"modules \(none\) are": {"modules.json": []},
    r"modules\.json: has no Pooling; set pooling_type": {"modules.json": modules("Transformer")},
    r"2_Pooling.config\.json: no such file; copy it from the model": {
        "modules.json": [
            *modules("Transformer"),
            {"type": "sentence_transformers.models.Pooling", "path": "2_Pooling"},
        ]
    },
    "pooling_mode = 'median' is not supported; set pooling_type": {
        POOLING: {"pooling_mode": "median"}
    },
    "pooling_mode_first_tokens = True is not": {POOLING: {"pooling_mode_first_tokens": True}},
    "include_prompt = False is not": {POOLING: {"include_prompt": False}},
    "pooling_mode_lasttoken = 'yes' is not": {POOLING: {"pooling_mode_lasttoken": "yes"}},
    "do_lower_case = True is not supported": {LENGTHS: {"do_lower_case": True}},
    "max_seq_length = 0 is not supported": {LENGTHS: {"max_seq_length": 0}},
    "transformer_task = 'fill-mask' is not": {LENGTHS: {"transformer_task": "fill-mask"}},
    "modality_config = {'image': {}} is not": {LENGTHS: {"modality_config": {"image": {}}}},
    "query_length = 32 is not": {LENGTHS: {"query_length": 32, "max_seq_length": 40}},
    "truncate_dim = 8 is not": {PROMPTS: {"truncate_dim": 8}},
    r"prompts = \['how '\] is not": {PROMPTS: {"prompts": ["how "]}},
    "default_prompt_name = 'other' is not": {
        PROMPTS: {"prompts": {"query": "how "}, "default_prompt_name": "other"}
    },
}


@pytest.mark.parametrize("message", UNSUPPORTED)
def test_settings_that_are_not_supported_are_rejected_by_name(tmp_path: Path, message: str) -> None:
    folder = write(tmp_path, PLAIN | UNSUPPORTED[message])
    with pytest.raises(ModelError, match=message):
        complete(EmbeddingConfig(), folder, LIMIT)


@pytest.mark.parametrize("name", [POOLING, LENGTHS, PROMPTS])
def test_a_file_that_modules_json_gives_no_meaning_is_rejected(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, {name: {}})
    with pytest.raises(ModelError, match=r"has no effect without modules\.json; copy that file"):
        complete(EmbeddingConfig(), folder, LIMIT)


def test_a_pooling_that_the_caller_replaces_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path, PLAIN | {POOLING: {"pooling_mode": "median"}})
    config = TextEmbeddingPipeline.Config(pooling_type=PoolingType.MEAN)
    assert complete(config, folder, LIMIT)[1] == ("mean",)


def test_a_length_of_the_caller_hides_no_setting_that_is_not_supported(tmp_path: Path) -> None:
    folder = write(tmp_path, PLAIN | {LENGTHS: {"max_seq_length": 9, "do_lower_case": True}})
    with pytest.raises(ModelError, match="do_lower_case = True is not supported"):
        complete(EmbeddingConfig(max_length=8), folder, LIMIT)
