"""Settings of the scheduler: openvino_genai's fields, defaults, types and printed forms.

tests/oracle/test_live_genai.py compares them to the real openvino_genai.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from genai_layer import (
    AggregationMode,
    CacheEvictionConfig,
    ConfigError,
    KVCrushAnchorPointMode,
    KVCrushConfig,
    SchedulerConfig,
    SparseAttentionMode,
)


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("max_num_batched_tokens", sys.maxsize, sys.maxsize),
        ("cache_size", np.int64(1), 1),
        ("dynamic_split_fuse", 0, False),
        ("use_cache_eviction", np.True_, True),
        ("cache_interval_multiplier", 4, 4),
        ("cache_interval_multiplier", None, None),
    ],
)
def test_fields_accept_numbers_of_their_type(name: str, value: Any, kept: Any) -> None:
    config = SchedulerConfig()
    setattr(config, name, value)
    assert getattr(config, name) == kept
    assert type(getattr(config, name)) is type(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cache_size", -1),
        ("cache_size", 1.5),
        ("cache_size", "3"),
        ("cache_size", None),
        ("cache_interval_multiplier", -1),
        ("dynamic_split_fuse", "YES"),
        ("cache_eviction_config", None),
    ],
)
def test_other_types_are_rejected(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"SchedulerConfig.{name} = "):
        setattr(SchedulerConfig(), name, value)


def test_an_error_lists_the_values_of_the_field() -> None:
    with pytest.raises(TypeError, match="= -1: pass an int from 0 or None"):
        SchedulerConfig().cache_interval_multiplier = -1


def test_an_unknown_field_is_rejected() -> None:
    with pytest.raises(AttributeError, match="cache_sise"):
        SchedulerConfig().cache_sise = 1  # pyright: ignore[reportAttributeAccessIssue] (a typo)


def test_two_configurations_share_nothing() -> None:
    one, two = SchedulerConfig(), SchedulerConfig()
    assert one == two
    one.sparse_attention_config.mode = SparseAttentionMode.XATTENTION
    one.cache_eviction_config.kvcrush_config.budget = 2
    assert two == SchedulerConfig() != one


def test_the_printed_form_has_the_settings_of_what_is_on() -> None:
    config = SchedulerConfig()
    lines = config.to_string().splitlines()
    assert lines[0] == "SchedulerConfig { "
    assert lines[5:8] == [
        "  cache_interval_multiplier: unset",
        "  dynamic_split_fuse: true",
        "  use_cache_eviction: false",
    ]
    config.use_sparse_attention = True
    assert "  xattention_threshold: 0.8\n" in config.to_string()
    assert "KVCrushConfig" not in config.to_string()


def test_sizes_of_cache_eviction() -> None:
    crush = KVCrushConfig(2, KVCrushAnchorPointMode.MEAN)
    config = CacheEvictionConfig(32, 64, 256, AggregationMode.SUM, kvcrush_config=crush)
    assert config.get_start_size() == 32
    assert config.get_recent_size() == 64
    assert config.get_max_cache_size() == 256
    assert config.get_evictable_size() == 160
    assert "  aggregation_mode: SUM\n" in config.to_string()
    assert "  anchor_point_mode: MEAN\n" in config.to_string()


@pytest.mark.parametrize("sizes", [(32, 64, 90), (32, 64, 96), (0, 64, 90), (1, 0, 90)])
def test_contradicting_sizes_are_rejected(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="must"):
        CacheEvictionConfig(*sizes, AggregationMode.SUM)
