"""Properties that choose among implementations: without effect, or rejected by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from genai_layer import LLMPipeline, PropertyError, SchedulerConfig
from genai_layer.testing.toy import answering_core


def scheduler(**fields: Any) -> SchedulerConfig:
    config = SchedulerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    return config


@pytest.mark.parametrize(
    ("device", "given"),
    [
        *[(device, {"ATTENTION_BACKEND": "PA"}) for device in ("NPU", "CPU")],
        *[(device, {"ATTENTION_BACKEND": "SDPA"}) for device in ("NPU", "CPU")],
        ("CPU", {"scheduler_config": scheduler(cache_size=2)}),
        ("NPU", {"scheduler_config": scheduler(cache_size=2, max_num_seqs=1)}),
        ("NPU", {"STATIC_PIPELINE": "STATEFUL"}),
        ("NPU", {"scheduler_config": scheduler(use_cache_eviction=True, max_num_seqs=1)}),
    ],
)
def test_harmless_values_have_no_effect(folder: Path, device: str, given: dict[str, Any]) -> None:
    plain, core = answering_core("hey"), answering_core("hey")
    LLMPipeline(folder, device, core=plain)
    assert LLMPipeline(folder, device, core=core, **given).generate("?") == "hey"
    assert core.config == plain.config, "the runtime never sees the property"


@pytest.mark.parametrize(
    ("device", "given", "message"),
    [
        ("NPU", {"ATTENTION_BACKEND": "X"}, "ATTENTION_BACKEND = 'X': must be PA or SDPA"),
        ("NPU", {"STATIC_PIPELINE": "x"}, "STATIC_PIPELINE = 'x': must be STATEFUL or STATELESS"),
        ("CPU", {"STATIC_PIPELINE": "STATEFUL"}, "only device NPU has it; leave it out"),
        ("NPU", {"scheduler_config": 3}, "scheduler_config = 3: must be a SchedulerConfig"),
        *[
            ("CPU", {"scheduler_config": scheduler(**{name: True})}, f"{name} is not supported")
            for name in ("use_cache_eviction", "use_sparse_attention")
        ],
    ],
)
def test_other_values_are_rejected_by_name(
    folder: Path, device: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PropertyError, match=message):
        LLMPipeline(folder, device, core=answering_core("hey"), **given)
