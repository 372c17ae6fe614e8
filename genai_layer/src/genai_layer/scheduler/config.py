"""Settings of openvino_genai's scheduler.

Source: openvino_genai.SchedulerConfig, docs/reference/genai.md#scheduler-config.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from genai_layer.scheduler.cache_eviction import AggregationMode, CacheEvictionConfig
from genai_layer.scheduler.settings import Settings, block
from genai_layer.scheduler.sparse_attention import SparseAttentionConfig

_NESTED = {
    "use_cache_eviction": "cache_eviction_config",
    "use_sparse_attention": "sparse_attention_config",
}


def _default_eviction() -> CacheEvictionConfig:
    return CacheEvictionConfig(32, 128, 672, AggregationMode.NORM_SUM)


@dataclass(slots=True)
class SchedulerConfig(Settings):
    """Settings of continuous batching; LLMPipeline generates one prompt at a time without them.

    ContinuousBatchingPipeline reads ``max_num_seqs`` (at most 8 sequences run at a time on NPU),
    ``num_kv_blocks`` (32 tokens of a request each) and, on NPU, ``enable_prefix_caching``. It
    rejects ``use_cache_eviction`` and ``use_sparse_attention``. The other settings have no effect:
    a step always reads a chunk of one prompt beside a token of each other request.
    """

    max_num_batched_tokens: int = 256
    num_kv_blocks: int = 0
    cache_size: int = 0
    """Cache size in GB."""
    num_linear_attention_blocks: int = 0
    cache_interval_multiplier: int | None = None
    dynamic_split_fuse: bool = True
    use_cache_eviction: bool = False
    max_num_seqs: int = 256
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
