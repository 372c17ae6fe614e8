"""Generation parameters: defaults, checks, files."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from genai_layer import ConfigError, GenerationConfig, ModelError, StopCriteria
from genai_layer.errors import ArgumentError
from genai_layer.generation_config import UNSET
from genai_layer.sampling.sampler import Sampler


def test_defaults_are_those_of_openvino_genai() -> None:
    assert GenerationConfig().model_dump(exclude={"logit_bias"}) == {
        "max_new_tokens": UNSET,
        "max_length": UNSET,
        "min_new_tokens": 0,
        "ignore_eos": False,
        "eos_token_id": -1,
        "stop_token_ids": set(),
        "stop_strings": set(),
        "include_stop_str_in_output": False,
        "echo": False,
        "logprobs": 0,
        "num_return_sequences": 1,
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
        "num_beams": 1,
        "num_beam_groups": 1,
        "diversity_penalty": 0.0,
        "length_penalty": 1.0,
        "no_repeat_ngram_size": UNSET,
        "stop_criteria": StopCriteria.HEURISTIC,
        "assistant_confidence_threshold": 0.0,
        "num_assistant_tokens": None,
        "max_ngram_size": 0,
        "branching_factor": 1,
        "tree_depth": 0,
        "pruning_ratio": 0,
        "relevance_weight": 0.5,
        "return_omni_outputs": False,
        "adapters": None,
        "structured_output_config": None,
        "parsers": [],
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_new_token": 3}, "did you mean max_new_tokens"),
        ({"num_beam": 4}, "did you mean num_beams"),
        ({"num_beams": None}, "num_beams = None"),
        ({"stop_criteria": 1}, "stop_criteria = 1"),
        ({"max_new_tokens": "5"}, "max_new_tokens = '5'"),
        ({"max_new_tokens": 5.5}, "max_new_tokens = 5.5"),
        ({"max_new_tokens": -1}, "greater than or equal to 0"),
        ({"do_sample": "no"}, "do_sample = 'no': pass a bool"),
        ({"stop_strings": [3]}, "stop_strings"),
        ({"rng_seed": 1 << 64}, "rng_seed"),
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


def test_an_end_of_text_id_given_by_attribute_is_a_stop_token_after_an_update() -> None:
    config = GenerationConfig(max_new_tokens=3)
    config.eos_token_id = 7
    with pytest.raises(ConfigError, match="eos_token_id = 7: must be among stop_token_ids"):
        config.validate()
    config.update_generation_config(max_new_tokens=4)
    config.validate()
    assert config.stop_token_ids == {7}


def test_scalars_of_numpy_and_any_sets_are_accepted() -> None:
    config = GenerationConfig(num_beams=np.int64(1), temperature=np.float32(0.5))
    config.do_sample = np.bool_(True)
    config.top_p, config.rng_seed = np.int32(1), np.uint64(1 << 40)
    config.stop_token_ids = frozenset({np.int64(3)})
    config.stop_strings = {"a": 0}.keys()
    assert (config.num_beams, config.temperature, config.top_p) == (1, 0.5, 1.0)
    assert (config.do_sample, config.rng_seed) == (True, 1 << 40)
    assert (config.stop_token_ids, config.stop_strings) == ({3}, {"a"})
    assert type(config.num_beams) is int
    assert {type(token) for token in config.stop_token_ids} == {int}


@pytest.mark.parametrize(
    ("values", "methods"),
    [
        ({}, {"greedy_decoding"}),
        ({"num_beams": 0}, {"greedy_decoding"}),
        ({"max_ngram_size": 1}, {"greedy_decoding"}),
        ({"num_assistant_tokens": 0}, {"greedy_decoding"}),
        ({"do_sample": True}, {"multinomial"}),
        ({"num_beams": 2}, {"beam_search"}),
        ({"num_beams": 2, "do_sample": True}, {"beam_search", "multinomial"}),
        ({"tree_depth": 1}, {"tree_search"}),
        ({"num_assistant_tokens": 3}, {"greedy_decoding", "assisting_generation"}),
        ({"assistant_confidence_threshold": 0.1}, {"greedy_decoding", "assisting_generation"}),
        (
            {"num_assistant_tokens": 1, "max_ngram_size": 1},
            {"greedy_decoding", "assisting_generation", "prompt_lookup"},
        ),
    ],
)
def test_parameters_select_the_method(values: dict, methods: set[str]) -> None:
    config = GenerationConfig(**values)
    names = [name for name in dir(config) if name.startswith("is_")]
    assert len(names) == 6
    assert {name.removeprefix("is_") for name in names if getattr(config, name)()} == methods


def test_configurations_are_compared_and_printed_as_values() -> None:
    assert GenerationConfig(top_k=3) == GenerationConfig(top_k=3)
    assert "top_k=3" in repr(GenerationConfig(top_k=3))
    config = GenerationConfig(num_beams=3, stop_criteria=StopCriteria.NEVER, stop_token_ids={5})
    for other in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert other == config
        other.num_beams = 4
        assert other != config


def test_max_length_counts_the_prompt_and_max_new_tokens_overrides_it() -> None:
    assert GenerationConfig(max_length=5).get_max_new_tokens(3) == 2
    assert GenerationConfig(max_length=5, max_new_tokens=9).get_max_new_tokens(3) == 9
    with pytest.raises(ConfigError, match="max_length = 5 leaves no room"):
        GenerationConfig(max_length=5).get_max_new_tokens(5)


def from_json(tmp_path: Path, content: object) -> GenerationConfig:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps(content))
    return GenerationConfig(path)


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
        },
    )
    assert (config.eos_token_id, config.stop_token_ids) == (7, {7, 8})
    assert (config.temperature, config.top_k, config.max_length) == (0.6, UNSET, UNSET)


FROM_FILES = {
    "max_new_tokens": 5,
    "max_length": 6,
    "min_new_tokens": 2,
    "ignore_eos": True,
    "eos_token_id": 3,
    "stop_strings": ["a", "b"],
    "include_stop_str_in_output": True,
    "echo": True,
    "logprobs": 2,
    "num_return_sequences": 3,
    "repetition_penalty": 1.5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "do_sample": True,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "min_p": 0.25,
    "num_beams": 4,
    "num_beam_groups": 2,
    "diversity_penalty": 0.5,
    "length_penalty": 2,
    "no_repeat_ngram_size": 3,
    "assistant_confidence_threshold": 0.5,
    "num_assistant_tokens": 7,
    "max_ngram_size": 2,
    "branching_factor": 3,
    "tree_depth": 2,
}
"""The fields that openvino_genai reads from a file."""

NOT_FROM_FILES = {
    "stop_token_ids": [4],
    "apply_chat_template": False,
    "rng_seed": 9,
    "pruning_ratio": 4,
    "relevance_weight": 0.25,
    "return_omni_outputs": True,
    "stop_criteria": "NEVER",
    "parsers": [],
    "logit_bias": {"3": 5},
}
"""Fields that it ignores there."""


def test_a_file_sets_the_fields_that_openvino_genai_reads(tmp_path) -> None:
    config = from_json(tmp_path, FROM_FILES | NOT_FROM_FILES)
    expected = FROM_FILES | {"stop_strings": {"a", "b"}, "stop_token_ids": {3}}
    assert config == GenerationConfig(**expected)


@pytest.mark.parametrize(
    ("value", "expected"), [(True, "EARLY"), (False, "HEURISTIC"), ("never", "NEVER")]
)
def test_early_stopping_of_a_file_is_the_stop_criterion(tmp_path, value, expected) -> None:
    config = from_json(tmp_path, {"early_stopping": value})
    assert config.stop_criteria is StopCriteria[expected]


def test_a_file_is_given_by_any_path_and_alone(tmp_path) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text('{"top_k": 3}')
    for given in (path, str(path), bytes(path)):
        assert GenerationConfig(given) == GenerationConfig(json_path=given)
        assert GenerationConfig(given).top_k == 3
    with pytest.raises(ConfigError, match="top_k: given in addition to json_path"):
        GenerationConfig(path, top_k=3)
    with pytest.raises(ModelError, match=r"none\.json: no such file"):
        GenerationConfig(tmp_path / "none.json")


@pytest.mark.parametrize("content", [[], {"temperature": "hot"}, {"eos_token_id": ["a"]}])
def test_a_broken_file_is_named(tmp_path, content) -> None:
    with pytest.raises(ModelError, match=r"generation_config\.json"):
        from_json(tmp_path, content)


@pytest.mark.parametrize("name", ["eos_token_id", "stop_token_ids"])
def test_ids_of_tokens_are_of_64_bits_with_a_sign(name: str) -> None:
    values = {"eos_token_id": int, "stop_token_ids": lambda number: {number}}[name]
    config = GenerationConfig(max_new_tokens=1, min_new_tokens=1, **{name: values((1 << 63) - 1)})
    Sampler(config)
    with pytest.raises(ArgumentError, match=rf"^{name}.* = {1 << 63}: .*less than {1 << 63}$"):
        setattr(config, name, values(1 << 63))
