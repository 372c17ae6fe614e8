"""Parameters compared to those of the real openvino_genai, live; skipped if it is not installed.

pip install openvino-genai==2026.4.1
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.genai.generation_cases import REJECTED, REPAIRS, UNSUPPORTED, VALID, WRONG, Values
from tests.genai.test_generation_config import FROM_FILES, NOT_FROM_FILES

import genai_layer

real = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle


def members(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def fields(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration that both packages have; enums as names."""
    names = getattr(type(config), "model_fields", None) or members(type(config))
    values = {name: getattr(config, name) for name in names if name != "logit_bias"}
    return {n: getattr(value, "name", value) for n, value in values.items() if not callable(value)}


def judge(values: Values) -> str:
    """Return what the real package objects to, however the values are set; empty if nothing."""
    by_keyword = real.GenerationConfig(**values)
    by_update, by_attribute = real.GenerationConfig(), real.GenerationConfig()
    by_update.update_generation_config(**values)
    for name, value in values.items():
        setattr(by_attribute, name, value)
    if by_attribute.eos_token_id >= 0:
        by_attribute.set_eos_token_id(by_attribute.eos_token_id)
    objections = {objection(config) for config in (by_keyword, by_update, by_attribute)}
    assert len(objections) == 1
    return objections.pop()


def objection(config: Any) -> str:
    try:
        config.validate()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("values", [*VALID, *(values for values, _ in UNSUPPORTED)], ids=str)
def test_accepted_parameters_are_accepted(values: Values) -> None:
    assert judge(values) == ""


@pytest.mark.parametrize("values", [values for values, _ in REJECTED], ids=str)
def test_rejected_parameters_are_rejected(values: Values) -> None:
    assert judge(values)


def test_rules_have_this_order() -> None:
    config = real.GenerationConfig()
    for name, value in WRONG.items():
        setattr(config, name, value)
    for changes, _, said in REPAIRS:
        for name, value in changes.items():
            setattr(config, name, value)
        assert said in objection(config)


@pytest.mark.parametrize("entries", [FROM_FILES, NOT_FROM_FILES])
def test_files_set_the_same_fields(tmp_path: Path, entries: Values) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps(entries))
    found, untouched = fields(real.GenerationConfig(path)), fields(real.GenerationConfig())
    assert fields(genai_layer.GenerationConfig(path)) == found
    changed = {name for name, value in found.items() if value != untouched[name]}
    assert changed == ({*FROM_FILES, "stop_token_ids"} if entries is FROM_FILES else set())


@pytest.mark.parametrize("value", [True, False, "never", "always", None, 1])
def test_early_stopping_is_read_alike(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({"early_stopping": value}))
    ours, theirs = genai_layer.GenerationConfig(path), real.GenerationConfig(path)
    assert ours.stop_criteria.name == theirs.stop_criteria.name


@pytest.mark.parametrize("values", [values for values, _ in [*UNSUPPORTED, *REJECTED]], ids=str)
def test_methods_are_recognised_alike(values: Values) -> None:
    ours, theirs = genai_layer.GenerationConfig(**values), real.GenerationConfig(**values)
    for name in members(real.GenerationConfig):
        if name.startswith("is_"):
            assert getattr(ours, name)() == getattr(theirs, name)()


SPEECH = {"eos_token_id": 3, "lang_to_id": {"<|en|>": 1}}


@pytest.mark.parametrize(
    ("values", "valid"),
    [
        (SPEECH, True),
        (SPEECH | {"language": "en", "task": "translate"}, True),
        (SPEECH | {"language": "<|en|>"}, True),
        (SPEECH | {"language": "<|fr|>"}, False),
        (SPEECH | {"language": "english"}, False),
        (SPEECH | {"task": "sing"}, False),
        (SPEECH | {"word_timestamps": True}, False),
        ({"eos_token_id": 3}, False),
        ({"lang_to_id": {"<|en|>": 1}}, False),
        ({"eos_token_id": 3, "is_multilingual": False}, True),
        ({"eos_token_id": 3, "is_multilingual": False, "language": "en"}, False),
        ({"eos_token_id": 3, "is_multilingual": False, "task": "translate"}, False),
    ],
    ids=str,
)
def test_parameters_of_speech_are_judged_alike(values: Values, valid: bool) -> None:
    for package in (genai_layer, real):
        assert (objection(package.WhisperGenerationConfig(**values)) == "") is valid


def test_files_of_whisper_set_the_same_fields(tmp_path: Path) -> None:
    path = tmp_path / "generation_config.json"
    entries = {
        "eos_token_id": 4,
        "alignment_heads": [[1, 2], [3, 4]],
        "lang_to_id": {"<|en|>": 5},
        "task_to_id": {"transcribe": 6, "translate": 7},
        "suppress_tokens": [8],
        "begin_suppress_tokens": [9],
        "max_initial_timestamp_index": 10,
        "decoder_start_token_id": 11,
        "pad_token_id": 12,
        "prev_sot_token_id": 13,
        "no_timestamps_token_id": 14,
        "is_multilingual": True,
        "translate_token_id": 15,
        "transcribe_token_id": 16,
        "return_timestamps": True,
        "word_timestamps": True,
        "language": "en",
        "task": "translate",
        "initial_prompt": "a",
        "hotwords": "b",
    }
    path.write_text(json.dumps(entries))
    for name in ("WhisperGenerationConfig", "ASRGenerationConfig"):
        ours = fields(getattr(genai_layer, name)(path))
        assert ours == fields(getattr(real, name)(path))
        assert ours["alignment_heads"] == [(1, 2), (3, 4)]


@pytest.mark.parametrize("values", [{}, {"max_length": 0}, {"batch_size": 0}, {"max_length": 1}])
def test_parameters_of_embeddings_are_judged_alike(values: Values) -> None:
    ours, theirs = (each.TextEmbeddingPipeline.Config(**values) for each in (genai_layer, real))
    assert (objection(ours) == "") is (objection(theirs) == "")
