"""Conversations whose attention is a submodel of its own: they say what those of STATIC say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

IDS = np.random.default_rng(5).integers(0, 97, 400).tolist()


def hints(kind: str) -> dict[str, str]:
    return {
        "NPUW_LLM_PREFILL_ATTENTION_HINT": kind,
        "NPUW_LLM_GENERATE_ATTENTION_HINT": kind,
        **({"NPUW_DEVICES": "NPU,CPU"} if kind == "DYNAMIC" else {}),
    }


FEATURES: dict[str, dict[str, Any]] = {
    "chunks of 32": {},
    "chunks of 64": {"NPUW_LLM_PREFILL_CHUNK_SIZE": 64},
    "f16": {"INFERENCE_PRECISION_HINT": "f16"},
    "i8 cache": {"KV_CACHE_PRECISION": "i8"},
    "variants": {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "72,128,192"},
    "several tokens": {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8},
    "prefixes": {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"},
    "copied rows": {"NPUW_LLM_KV_SWITCHOVER": "COPY"},
    "whole head": {"NPUW_LLM_SHARED_HEAD": "NO"},
    "interpreter": {"NPUW_DEVICES": "CPU"},
    "truncated": {"NPUW_LLM_ON_FULL": "TRUNCATE"},
    "sliding": {"NPUW_LLM_ON_FULL": "SLIDE", "NPUW_LLM_SINK_TOKENS": 4},
}
CLOSE = {"f16": 1e-2, "i8 cache": 5e-3}


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("kind", ["HFA", "DYNAMIC"])
def test_a_conversation_is_what_it_is_otherwise(talks, kind: str, feature: str) -> None:
    """A prompt, steps until the cache is full where that is allowed, a rewind, another prompt."""
    options = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, **FEATURES[feature]}
    both = [talks(**hints("STATIC"), **options), talks(**{**hints(kind), **options})]

    def tell(ids: list[int], back: int = 0) -> None:
        expected, found = (talk.tell(ids, back) for talk in both)
        assert np.abs(found - expected).max() <= CLOSE.get(feature, 2e-5) * np.abs(expected).max()
        assert feature in CLOSE or found.argmax() == expected.argmax()

    tell(IDS[:70])
    for token in IDS[70 : 200 if "NPUW_LLM_ON_FULL" in options else 76]:
        tell([token])
    tell([3], back=5)
    for talk in both:
        talk.reset()
    tell(IDS[:45])
    tell([3])
