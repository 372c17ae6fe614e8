"""Settings of openvino_genai's sparse attention.

Source: openvino_genai.SparseAttentionConfig, docs/reference/genai.md#scheduler-config.
"""

from __future__ import annotations

from dataclasses import dataclass

from genai_layer.named_enum import NamedEnum
from genai_layer.scheduler.settings import Settings, block


class SparseAttentionMode(NamedEnum):
    """Algorithm of sparse attention."""

    TRISHAPE = 0
    XATTENTION = 1


@dataclass(slots=True)
class SparseAttentionConfig(Settings):
    """Settings of sparse attention, sizes in tokens."""

    mode: SparseAttentionMode = SparseAttentionMode.TRISHAPE
    num_last_dense_tokens_in_prefill: int = 100
    num_retained_start_tokens_in_cache: int = 128
    num_retained_recent_tokens_in_cache: int = 1920
    xattention_threshold: float = 0.8
    xattention_block_size: int = 64
    xattention_stride: int = 8

    def to_string(self) -> str:
        """Return the printed form."""
        names = [name for name in type(self).__slots__ if name != "mode"]
        lines = [(name, getattr(self, name)) for name in names]
        return block("SparseAttentionConfig", [("sparseAttentionMode", self.mode), *lines])
