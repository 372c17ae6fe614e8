"""AdapterConfig: its constructors and methods; tests/stack compares openvino_genai's."""

from __future__ import annotations

import copy

import pytest

from genai_layer import Adapter, AdapterConfig, ConfigError, GenerationConfig

ONE, TWO = Adapter(), Adapter()
Mode = AdapterConfig.Mode


@pytest.mark.parametrize(
    ("made", "pairs", "mode"),
    [
        (AdapterConfig(), [], Mode.MODE_AUTO),
        (AdapterConfig(Mode.MODE_FUSE), [], Mode.MODE_FUSE),
        (AdapterConfig(ONE), [(ONE, 1)], Mode.MODE_AUTO),
        (AdapterConfig(ONE, 0.5), [(ONE, 0.5)], Mode.MODE_AUTO),
        (AdapterConfig(ONE, Mode.MODE_STATIC), [(ONE, 1)], Mode.MODE_STATIC),
        (AdapterConfig(ONE, 2, Mode.MODE_STATIC), [(ONE, 2)], Mode.MODE_STATIC),
        (AdapterConfig([ONE, TWO], Mode.MODE_FUSE), [(ONE, 1), (TWO, 1)], Mode.MODE_FUSE),
        (AdapterConfig([(ONE, 0.25), (TWO, -1)]), [(ONE, 0.25), (TWO, -1)], Mode.MODE_AUTO),
        (AdapterConfig(adapters=[ONE], mode=Mode.MODE_FUSE), [(ONE, 1)], Mode.MODE_FUSE),
        (AdapterConfig(adapter=ONE, alpha=3), [(ONE, 3)], Mode.MODE_AUTO),
        (AdapterConfig(mode=Mode.MODE_DYNAMIC), [], Mode.MODE_DYNAMIC),
    ],
)
def test_all_forms_of_the_constructor_are_accepted(made, pairs, mode) -> None:
    assert made.get_adapters_and_alphas() == pairs
    assert made.mode is mode
    assert bool(made) == bool(pairs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("x",), {}),
        ((3,), {}),
        ((ONE, "x"), {}),
        ((ONE, 1, 2), {}),
        (([ONE], 0.5), {}),
        (([(ONE, 1, 2)],), {}),
        (([(ONE, "x")],), {}),
        (([3],), {}),
        ((ONE,), {"adapter": TWO}),
        ((ONE,), {"adapters": [TWO]}),
        ((), {"alpha": 1.0}),
        ((), {"weights": 1.0}),
        ((ONE, float("nan")), {}),
        ((ONE, 1e300), {}),
        ((ONE, Mode.MODE_FUSE, Mode.MODE_FUSE), {}),
    ],
)
def test_other_forms_are_rejected(args, kwargs) -> None:
    with pytest.raises(ConfigError, match="AdapterConfig"):
        AdapterConfig(*args, **kwargs)


def test_adapters_are_added_removed_and_weighted() -> None:
    config = AdapterConfig(ONE, 0.5).add(TWO, 0.25).set_alpha(ONE, 2)
    assert [config.get_alpha(each) for each in config.get_adapters()] == [2, 0.25]
    with pytest.raises(ConfigError, match="was added already"):
        config.add(ONE)
    assert config.remove(ONE).get_adapters() == [TWO]
    for call in (config.remove, config.get_alpha, lambda each: config.set_alpha(each, 1)):
        with pytest.raises(ConfigError, match="not in this AdapterConfig"):
            call(ONE)


def test_copies_are_independent_and_share_their_adapters() -> None:
    config = AdapterConfig(ONE, 0.5)
    for other in (config.copy(), copy.copy(config), copy.deepcopy(config)):
        assert other == config
        assert other.get_adapters()[0] is ONE
        assert other.set_alpha(ONE, 1) != config


def test_a_generation_config_copies_its_adapters() -> None:
    adapters, config = AdapterConfig(ONE), GenerationConfig(max_new_tokens=1)
    assert config.adapters is None
    config.adapters = adapters
    adapters.add(TWO)
    assert config.adapters == AdapterConfig(ONE)
    assert config.updated({"max_new_tokens": 2}).adapters == AdapterConfig(ONE)
    with pytest.raises(ConfigError, match="adapters = "):
        GenerationConfig(adapters=ONE)
