"""Settings of openvino_genai's cache eviction.

Source: openvino_genai.CacheEvictionConfig, docs/reference/genai.md#scheduler-config.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from genai_layer.errors import ConfigError
from genai_layer.named_enum import NamedEnum
from genai_layer.scheduler.settings import Settings, block


class AggregationMode(NamedEnum):
    """Sum of a token's scores."""

    SUM = 0
    NORM_SUM = 1
    ADAPTIVE_RKV = 2


class KVCrushAnchorPointMode(NamedEnum):
    """Anchor of KVCrush."""

    RANDOM = 0
    ZEROS = 1
    ONES = 2
    MEAN = 3
    ALTERNATING = 4


@dataclass(slots=True)
class KVCrushConfig(Settings):
    """Settings of KVCrush."""

    budget: int = 0
    anchor_point_mode: KVCrushAnchorPointMode = KVCrushAnchorPointMode.RANDOM
    rng_seed: int = 0

    def to_string(self) -> str:
        """Return the printed form."""
        names = ("budget", "rng_seed", "anchor_point_mode")
        return block("KVCrushConfig", [(name, getattr(self, name)) for name in names])


@dataclass(slots=True)
class AdaptiveRKVConfig(Settings):
    """Settings of Adaptive R-KV."""

    attention_mass: float = 0.9
    window_size: int = 8


@dataclass(slots=True)
class CacheEvictionConfig(Settings):
    """Settings of cache eviction, sizes in tokens.

    Raises:
        ConfigError: a size is 0, or max_cache_size leaves no token to evict.
    """

    start_size: int
    recent_size: int
    max_cache_size: int
    aggregation_mode: AggregationMode
    apply_rotation: bool = False
    snapkv_window_size: int = 8
    kvcrush_config: KVCrushConfig = field(default_factory=KVCrushConfig)
    adaptive_rkv_config: AdaptiveRKVConfig = field(default_factory=AdaptiveRKVConfig)

    def __post_init__(self) -> None:
        if not self.start_size or not self.recent_size:
            raise ConfigError("CacheEvictionConfig: start_size and recent_size must be at least 1")
        if self.get_evictable_size() < 1:
            raise ConfigError(
                f"max_cache_size = {self.max_cache_size}: must exceed start_size + recent_size"
            )

    def get_start_size(self) -> int:
        """Return the number of first tokens that are kept."""
        return self.start_size

    def get_recent_size(self) -> int:
        """Return the number of latest tokens that are kept."""
        return self.recent_size

    def get_max_cache_size(self) -> int:
        """Return the maximum number of tokens that are kept."""
        return self.max_cache_size

    def get_evictable_size(self) -> int:
        """Return the number of tokens between the first and the latest."""
        return self.max_cache_size - self.start_size - self.recent_size

    def to_string(self) -> str:
        """Return the printed form; the aggregation mode ADAPTIVE_RKV is left out."""
        mode = self.aggregation_mode
        return block(
            "CacheEvictionConfig",
            [
                ("start_size", self.start_size),
                ("recent_size", self.recent_size),
                ("max_cache_size", self.max_cache_size),
                ("evictable_size", self.get_evictable_size()),
                *([] if mode is AggregationMode.ADAPTIVE_RKV else [("aggregation_mode", mode)]),
                ("apply_rotation", self.apply_rotation),
                ("snapkv_window_size", self.snapkv_window_size),
                self.kvcrush_config.to_string(),
            ],
        )
