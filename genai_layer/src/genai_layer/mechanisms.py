"""Properties of openvino_genai that choose among implementations; there is one here.

Values are accepted if openvino_genai ignores them on the device, or if they only change its speed
or memory; the others are rejected.

Source: docs/reference/genai.md#construction, docs/reference/genai.md#unsupported-on-npu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.scheduler import SchedulerConfig


def take_mechanisms(properties: dict[str, Any], device: str) -> None:
    """Remove the properties that have no effect.

    Raises:
        PropertyError: a value is unknown, or would have an effect.
    """
    for name, check in _CHECKS.items():
        if name in properties:
            check(name, properties[name], device)
            del properties[name]


def _attention_backend(name: str, value: Any, device: str) -> None:
    del device
    if value not in ("PA", "SDPA"):
        raise PropertyError(f"{name} = {value!r}: must be PA or SDPA, which have no effect")


def _static_pipeline(name: str, value: Any, device: str) -> None:
    if device != "NPU":
        raise PropertyError(f"{name}: only device NPU has it; leave it out")
    if value not in ("STATEFUL", "STATELESS"):
        raise PropertyError(f"{name} = {value!r}: must be STATEFUL or STATELESS, without effect")


def _scheduler_config(name: str, value: Any, device: str) -> None:
    if not isinstance(value, SchedulerConfig):
        raise PropertyError(
            f"{name} = {value!r}: must be a SchedulerConfig; pass SchedulerConfig()"
        )
    for option in ("use_cache_eviction", "use_sparse_attention"):
        if device != "NPU" and getattr(value, option):
            raise PropertyError(f"{name}: {option} is not supported; set it to False")


_CHECKS: dict[str, Callable[[str, Any, str], None]] = {
    "ATTENTION_BACKEND": _attention_backend,
    "STATIC_PIPELINE": _static_pipeline,
    "scheduler_config": _scheduler_config,
}
