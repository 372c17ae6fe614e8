"""Combinations of options that cut, bind or feed a model differently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SMALL = {
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": "96,192",
}
BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"}
HFA = {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"}
HOST = {"NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED", "NPUW_LLM_GENERATE_MOE_HINT": "HOST_ROUTED"}
DEVICE = {**HOST, "NPUW_LLM_GENERATE_MOE_HINT": "DEVICE_ROUTED"}
CUT = {"NPUW_ONLINE_ISOLATE": "P:RMSNorm/norm"}
LAYERS = {"NPUW_ONLINE_PIPELINE": "REP"}
EIGHT_BITS = {"KV_CACHE_PRECISION": "i8"}
"""Types whose stored values may differ in the last digit."""
PREFIXES = {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES", "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16}


def story(talk: Any) -> np.ndarray:
    """Return all logits of a prompt of three chunks, steps into the next variant, and a rewind."""
    said = [talk.tell(np.arange(90) * 7 % 97)]
    said += [talk.tell([token]) for token in (3, 14, 15, 9, 26, 5, 35)]
    return np.array([*said, talk.tell([8], back=4)])


def check(talk: Any, plain: Any, tolerance: float = 1e-5) -> None:
    said, expected = story(talk), story(plain)
    assert np.abs(said - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options", [BLOCKS, HFA, LAYERS, CUT | BLOCKS, BLOCKS | PREFIXES], ids=repr
)
def test_adapters_reach_every_part_of_a_model(talks, adapt, options) -> None:
    llama = adapt("llama_fp16")
    pair = [talks(llama.path, **SMALL, **each) for each in (options, {})]
    for talk in pair:
        states = {state.name: state for state in talk.request.query_state()}
        for name, values in llama.draw(8, seed=1).items():
            states[name].state = values
    check(*pair)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [HOST | HFA, HOST | CUT | BLOCKS, DEVICE | BLOCKS | PREFIXES, DEVICE | HFA],
    ids=repr,
)
def test_routed_experts_together_with_other_options(
    talks, load_module: Callable[[Path], Any], tmp_path_factory, options
) -> None:
    exported = Path(__file__).resolve().parents[2] / "goldens" / "exported"
    folder = tmp_path_factory.mktemp("mixture")
    path = load_module(exported / "restore.py").restore(exported, "qwen3_moe_fp16", folder)
    check(talks(path, **SMALL, **options), talks(path, **SMALL))


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "stored", "tolerance"),
    [
        (BLOCKS | CUT, EIGHT_BITS, 1e-3),
        (HFA | PREFIXES, {}, 1e-5),
        (LAYERS | PREFIXES, EIGHT_BITS, 1e-3),
    ],
    ids=repr,
)
def test_a_cut_model_stores_the_same_rows(talks, tall, options, stored, tolerance) -> None:
    check(talks(tall, **SMALL, **options, **stored), talks(tall, **SMALL, **stored), tolerance)
