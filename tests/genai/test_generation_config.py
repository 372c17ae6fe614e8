"""Generation parameters: defaults, checks, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from genai_layer import ConfigError, GenerationConfig, ModelError
from genai_layer.generation_config import UNSET


def test_defaults_are_those_of_openvino_genai() -> None:
    assert GenerationConfig().model_dump() == {
        "max_new_tokens": UNSET,
        "max_length": UNSET,
        "min_new_tokens": 0,
        "ignore_eos": False,
        "eos_token_id": -1,
        "stop_token_ids": set(),
        "stop_strings": set(),
        "include_stop_str_in_output": False,
        "logprobs": 0,
        "apply_chat_template": True,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "do_sample": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": UNSET,
        "min_p": 0.0,
        "rng_seed": 0,
        "adapters": None,
    }


@pytest.mark.parametrize(
    "values",
    [
        {"eos_token_id": 3, "stop_token_ids": {3, -1}},
        {"ignore_eos": True, "eos_token_id": 3},
        {},
        {"max_new_tokens": 0},
        {"max_new_tokens": 3, "min_new_tokens": 4},
        {"max_new_tokens": 3, "frequency_penalty": 2.5},
        {"max_new_tokens": 3, "presence_penalty": -2.5},
        {"max_new_tokens": 3, "repetition_penalty": 0.0},
        {"max_new_tokens": 3, "do_sample": True, "top_p": 0.0},
        {"max_new_tokens": 3, "do_sample": True, "top_p": 1.5},
        {"max_new_tokens": 3, "do_sample": True, "temperature": 0.0},
        {"max_new_tokens": 3, "do_sample": True, "temperature": float("nan")},
        {"max_new_tokens": 3, "do_sample": True, "min_p": 1.0},
        {"max_new_tokens": 3, "stop_strings": {""}},
    ],
)
def test_contradictions_are_rejected(values: dict) -> None:
    with pytest.raises(ConfigError):
        GenerationConfig(**values).validate()


@pytest.mark.parametrize(
    "values",
    [
        {"eos_token_id": 3},
        {"stop_token_ids": {3}},
        {"stop_strings": {"\n"}},
        {"max_length": 0},
        {"max_new_tokens": 3, "top_k": 0, "do_sample": True},
        {"max_new_tokens": 3, "temperature": 0.0, "top_p": 7.0},
        {"max_new_tokens": 3, "logprobs": 5},
        {"max_new_tokens": 3, "num_beams": 1, "num_return_sequences": 1},
    ],
)
def test_valid_combinations_are_accepted(values: dict) -> None:
    GenerationConfig(**values).validate()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_new_token": 3}, "did you mean max_new_tokens"),
        ({"num_beams": 4}, "num_beams = 4 is not supported"),
        ({"echo": True}, "echo = True is not supported"),
        ({"max_new_tokens": "5"}, "max_new_tokens = '5'"),
        ({"max_new_tokens": 5.5}, "max_new_tokens = 5.5"),
        ({"max_new_tokens": -1}, "greater than or equal to 0"),
        ({"do_sample": 1}, "do_sample = 1"),
        ({"stop_strings": [3]}, "stop_strings"),
        ({"rng_seed": 1 << 32}, "rng_seed"),
    ],
)
def test_unknown_names_and_wrong_types_are_rejected_with_a_hint(values, message) -> None:
    with pytest.raises(ConfigError, match=message):
        GenerationConfig(**values)
    with pytest.raises(ConfigError, match=message):
        GenerationConfig().update_generation_config(**values)


def test_a_rejected_update_changes_nothing() -> None:
    config = GenerationConfig(max_new_tokens=3)
    with pytest.raises(ConfigError):
        config.update_generation_config(max_new_tokens=9, top_p="high")
    assert config.max_new_tokens == 3


def test_one_stop_string_or_a_list_is_accepted_as_a_set() -> None:
    assert GenerationConfig(stop_strings="a").stop_strings == {"a"}
    assert GenerationConfig(stop_strings=["a", "b"]).stop_strings == {"a", "b"}
    assert GenerationConfig(stop_token_ids=[1, 1]).stop_token_ids == {1}


def test_an_end_of_text_id_given_by_keyword_is_a_stop_token() -> None:
    assert GenerationConfig(eos_token_id=3, stop_token_ids={5}).stop_token_ids == {3, 5}
    config = GenerationConfig()
    config.set_eos_token_id(4)
    assert (config.eos_token_id, config.stop_token_ids) == (4, {4})


def test_an_end_of_text_id_given_by_attribute_is_a_stop_token() -> None:
    config = GenerationConfig(max_new_tokens=3)
    config.eos_token_id = 7
    config.validate()
    assert config.stop_token_ids == {7}


def test_configurations_are_compared_and_printed_as_values() -> None:
    assert GenerationConfig(top_k=3) == GenerationConfig(top_k=3)
    assert "top_k=3" in repr(GenerationConfig(top_k=3))


def test_max_length_counts_the_prompt_and_max_new_tokens_overrides_it() -> None:
    assert GenerationConfig(max_length=5).get_max_new_tokens(3) == 2
    assert GenerationConfig(max_length=5, max_new_tokens=9).get_max_new_tokens(3) == 9
    with pytest.raises(ConfigError, match="max_length = 5 leaves no room"):
        GenerationConfig(max_length=5).get_max_new_tokens(5)


def from_json(tmp_path: Path, content: object) -> GenerationConfig:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps(content))
    return GenerationConfig.from_file(path)


def test_a_file_may_have_several_stop_tokens_and_fields_of_other_libraries(tmp_path) -> None:
    config = from_json(
        tmp_path,
        {
            "eos_token_id": [7, 8],
            "do_sample": True,
            "temperature": 0.6,
            "transformers_version": "4.57",
            "max_length": -1,
            "top_k": None,
            "rng_seed": 9,
        },
    )
    assert (config.eos_token_id, config.stop_token_ids) == (7, {7, 8})
    assert (config.temperature, config.top_k, config.rng_seed) == (0.6, UNSET, 0)


@pytest.mark.parametrize("content", [[], {"temperature": "hot"}, {"eos_token_id": ["a"]}])
def test_a_broken_file_is_named(tmp_path, content) -> None:
    with pytest.raises(ModelError, match=r"generation_config\.json"):
        from_json(tmp_path, content)
