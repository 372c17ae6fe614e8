"""A cache in blocks (NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE) with all other features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
WHOLE = BLOCKS | {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "NO"}
IDS = np.random.default_rng(5).integers(0, 97, 400).tolist()

FEATURES: dict[str, dict[str, Any]] = {
    "f32": {},  # of a model whose layers are folded
    "f16, copies": {"INFERENCE_PRECISION_HINT": "f16", "NPUW_LLM_KV_SWITCHOVER": "COPY"},
    "chunks of 16, whole head": {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16, "NPUW_LLM_SHARED_HEAD": "NO"},
    "chunks of 64, several tokens": {
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
        "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
    },
    "f8 cache": {"KV_CACHE_PRECISION": "f8e4m3"},
    "f16 cache, transposed": {"KV_CACHE_PRECISION": "f16", "NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "f32 cache": {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f16"},
    "i8 cache, transposed": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES", "KV_CACHE_PRECISION": "i8"},
    "variants": {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "72,128,192"},
    "a variant shorter than a block": {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "24,192"},
    "prefixes": {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES", "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 24},
    "interpreter": {"NPUW_DEVICES": "CPU"},
    "truncated": {"NPUW_LLM_ON_FULL": "TRUNCATE"},
    "sliding": {"NPUW_LLM_ON_FULL": "SLIDE", "NPUW_LLM_SINK_TOKENS": 4},
    "offloaded": {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
    "checked": {"NPUW_DEVICES": "NPU,CPU", "NPUW_ACC_CHECK": "YES"},
}


@pytest.mark.matrix
@pytest.mark.parametrize("feature", FEATURES)
def test_a_conversation_equals_one_with_a_contiguous_cache(
    talks, tiny: Path, tall: Path, feature: str
) -> None:
    """A prompt, steps until the cache is full if allowed, rewinds, another prompt."""
    options, model = FEATURES[feature], tall if feature in ("f32", "offloaded") else tiny
    both = [talks(model, **(kind | options)) for kind in (BLOCKS, WHOLE)]

    def tell(ids: list[int], back: int = 0) -> None:
        found, expected = (talk.tell(ids, back) for talk in both)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()

    tell(IDS[:70])
    for token in IDS[70 : 220 if "NPUW_LLM_ON_FULL" in options else 134]:
        tell([token])
    if "NPUW_LLM_ON_FULL" not in options:
        for back, count in ((5, 1), (90, 1), (33, 20), (1, 1)):
            tell(IDS[:count], back)
    for talk in both:
        talk.reset()
    for count in (45, 1, 33, 1):
        tell(IDS[:count])
