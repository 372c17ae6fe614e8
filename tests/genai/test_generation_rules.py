"""Rules for generation parameters: openvino_genai's, in its order, and methods to come."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.genai.generation_cases import REJECTED, REPAIRS, UNSUPPORTED, VALID, WRONG, Values

from genai_layer import ConfigError, GenerationConfig
from genai_layer.generation_rules import contradictions


def by_keyword(values: Values) -> GenerationConfig:
    return GenerationConfig(**values)


def by_update(values: Values) -> GenerationConfig:
    config = GenerationConfig()
    config.update_generation_config(**values)
    return config


def by_attribute(values: Values) -> GenerationConfig:
    config = GenerationConfig()
    for name, value in values.items():
        setattr(config, name, value)
    if config.eos_token_id >= 0:
        config.set_eos_token_id(config.eos_token_id)
    return config


ways = pytest.mark.parametrize("make", [by_keyword, by_update, by_attribute])
Make = Callable[[Values], GenerationConfig]


def check_fields(config: GenerationConfig, values: Values) -> None:
    for name, value in values.items():
        found = getattr(config, name)
        assert value <= found if name == "stop_token_ids" else found == value


@ways
@pytest.mark.parametrize("values", VALID, ids=str)
def test_what_openvino_genai_accepts_is_accepted(make: Make, values: Values) -> None:
    config = make(values)
    config.validate()
    check_fields(config, values)
    assert values.get("eos_token_id", -1) in {*config.stop_token_ids, -1}


@ways
@pytest.mark.parametrize(("values", "named"), UNSUPPORTED, ids=str)
def test_unsupported_methods_are_accepted_until_they_are_validated(
    make: Make, values: Values, named: str
) -> None:
    config = make(values)
    check_fields(config, values)
    assert not any(broken for broken, _ in contradictions(config))
    with pytest.raises(ConfigError, match=f"^{named} is not supported; set it to"):
        config.validate()


@ways
@pytest.mark.parametrize(("values", "message"), REJECTED, ids=str)
def test_what_openvino_genai_rejects_is_rejected(make: Make, values: Values, message: str) -> None:
    config = make(values)
    with pytest.raises(ConfigError, match=message):
        config.validate()


def test_rules_are_checked_in_openvino_genais_order() -> None:
    config = by_attribute({})
    for name, value in WRONG.items():
        setattr(config, name, value)
    for changes, message, _ in REPAIRS:
        for name, value in changes.items():
            setattr(config, name, value)
        with pytest.raises(ConfigError, match=message):
            config.validate()


def test_an_empty_stop_string_is_rejected() -> None:
    with pytest.raises(ConfigError, match="stop_strings: a stop string must not be empty"):
        GenerationConfig(stop_strings={""}).validate()
