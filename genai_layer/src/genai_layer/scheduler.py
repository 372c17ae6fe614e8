"""Settings of openvino_genai's scheduler; most of them have no counterpart here.

Their types are checked, and they have a printed form.

Source: openvino_genai.SchedulerConfig, CacheEvictionConfig and SparseAttentionConfig,
docs/reference/genai.md#scheduler-config.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from genai_layer.checked import Checked
from genai_layer.errors import ConfigError
from genai_layer.kinds import Unsigned
from genai_layer.named_enum import NamedEnum


def block(title: str, lines: Iterable[tuple[str, object] | str]) -> str:
    """Return the printed form of settings.

    Args:
        title: name of the class.
        lines: names and values, and the printed forms of nested settings.
    """
    texts = (line if isinstance(line, str) else f"  {line[0]}: {_text(line[1])}" for line in lines)
    return f"{title} {{ \n" + "".join(f"{text}\n" for text in texts) + " }"


def _text(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    return f"{value:g}" if isinstance(value, float) else str(value)


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
class KVCrushConfig(Checked):
    """Settings of KVCrush."""

    budget: Unsigned = 0
    anchor_point_mode: KVCrushAnchorPointMode = KVCrushAnchorPointMode.RANDOM
    rng_seed: Unsigned = 0

    def to_string(self) -> str:
        """Return the printed form."""
        names = ("budget", "rng_seed", "anchor_point_mode")
        return block("KVCrushConfig", [(name, getattr(self, name)) for name in names])


@dataclass(slots=True)
class AdaptiveRKVConfig(Checked):
    """Settings of Adaptive R-KV."""

    attention_mass: float = 0.9
    window_size: Unsigned = 8


@dataclass(slots=True)
class CacheEvictionConfig(Checked):
    """Settings of cache eviction, sizes in tokens.

    Raises:
        ConfigError: a size is 0, or max_cache_size leaves no token to evict.
    """

    start_size: Unsigned
    recent_size: Unsigned
    max_cache_size: Unsigned
    aggregation_mode: AggregationMode
    apply_rotation: bool = False
    snapkv_window_size: Unsigned = 8
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


class SparseAttentionMode(NamedEnum):
    """Algorithm of sparse attention."""

    TRISHAPE = 0
    XATTENTION = 1


@dataclass(slots=True)
class SparseAttentionConfig(Checked):
    """Settings of sparse attention, sizes in tokens."""

    mode: SparseAttentionMode = SparseAttentionMode.TRISHAPE
    num_last_dense_tokens_in_prefill: Unsigned = 100
    num_retained_start_tokens_in_cache: Unsigned = 128
    num_retained_recent_tokens_in_cache: Unsigned = 1920
    xattention_threshold: float = 0.8
    xattention_block_size: Unsigned = 64
    xattention_stride: Unsigned = 8

    def to_string(self) -> str:
        """Return the printed form."""
        names = [name for name in type(self).__slots__ if name != "mode"]
        lines = [(name, getattr(self, name)) for name in names]
        return block("SparseAttentionConfig", [("sparseAttentionMode", self.mode), *lines])


_NESTED = {
    "use_cache_eviction": "cache_eviction_config",
    "use_sparse_attention": "sparse_attention_config",
}


def _default_eviction() -> CacheEvictionConfig:
    return CacheEvictionConfig(32, 128, 672, AggregationMode.NORM_SUM)


@dataclass(slots=True)
class SchedulerConfig(Checked):
    """Settings of continuous batching; LLMPipeline generates one prompt at a time without them.

    ContinuousBatchingPipeline reads ``max_num_seqs`` (at most 8 sequences run at a time on NPU),
    ``num_kv_blocks`` (32 tokens of a request each) and, on NPU, ``enable_prefix_caching``.
    LLMPipeline reads the first and the last of them on NPU. ContinuousBatchingPipeline rejects
    ``use_cache_eviction`` and ``use_sparse_attention``. The other settings have no effect: a step
    always reads a chunk of one prompt beside a token of each other request.
    """

    max_num_batched_tokens: Unsigned = 256
    num_kv_blocks: Unsigned = 0
    cache_size: Unsigned = 0
    """Cache size in GB."""
    num_linear_attention_blocks: Unsigned = 0
    cache_interval_multiplier: Unsigned | None = None
    dynamic_split_fuse: bool = True
    use_cache_eviction: bool = False
    max_num_seqs: Unsigned = 256
    enable_prefix_caching: bool = False
    use_sparse_attention: bool = False
    cache_eviction_config: CacheEvictionConfig = field(default_factory=_default_eviction)
    sparse_attention_config: SparseAttentionConfig = field(default_factory=SparseAttentionConfig)

    def to_string(self) -> str:
        """Return the printed form; settings of what is off are left out."""
        return block("SchedulerConfig", self._lines())

    def _lines(self) -> Iterator[tuple[str, object] | str]:
        for name in type(self).__slots__:
            if name not in _NESTED.values():
                yield name, getattr(self, name)
            if name in _NESTED and getattr(self, name):
                yield getattr(self, _NESTED[name]).to_string()
