"""Random sequences of tokens, adapters and rewinds: caches hold rows of the adapters in force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.traits.lora.conftest import wear

CLEVER = {
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 8,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "112,192",
}
SHARED = np.random.default_rng(3).integers(0, 1000, 40).tolist()

turns = st.tuples(
    st.integers(0, 1),  # request
    st.sampled_from([None, None, 0, 1, 2]),  # adapter from now on
    st.sampled_from(["begin", "go on", "step", "back"]),
    st.integers(9, 40),  # tokens of the shared prompt, or of the rewind
)


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(st.lists(turns, min_size=2, max_size=8))
def test_two_requests_with_shared_caches_equal_two_plain_ones(talks, llama, script) -> None:
    """Two requests share prefix cache, chunks and variants; the reference has none of these."""
    adapters = [llama.off, llama.draw(8, seed=1), llama.draw(3, seed=2)]
    pairs = [(talks(llama.path, **CLEVER), talks(llama.path)) for _ in range(2)]
    for who, adapter, action, count in script:
        pair = pairs[who]
        said = pair[0].said
        for talk in pair:
            if adapter is not None:
                wear(talk, adapters[adapter])
            if action == "begin" or not said or said > 100:
                talk.reset()
        fresh = not pair[0].said
        ids = SHARED[:count] if fresh else {"go on": SHARED[:9]}.get(action, [count])
        back = min(count, said - 1) if action == "back" and not fresh else 0
        found, expected = (talk.tell(ids, back=back).copy() for talk in pair)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
