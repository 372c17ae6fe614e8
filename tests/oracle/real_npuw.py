"""How the real NPUW is asked to run without an NPU, and to compute in f32 from end to end.

Its submodels run on OpenVINO's CPU plugin then (fact sheet npuw §e.1). Left to itself it computes
in f16 here and there.
"""

from __future__ import annotations

from typing import Any

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
"""Lets the CPU plugin compute as the IR says."""

ON_CPU: dict[str, Any] = {
    "NPU_USE_NPUW": "YES",
    "NPUW_LLM": "YES",
    "NPUW_DEVICES": "CPU",
    "NPUW_ONLINE_PIPELINE": "NONE",
    "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC",
    "NPUW_LLM_GENERATE_ATTENTION_HINT": "STATIC",
}

EXACTLY = EXACT | {
    "NPUW_F16IC": "NO",
    "NPUW_FOLD": "NO",
    "NPUW_FUNCALL_FOR_ALL": "NO",
    "NPUW_DCOFF_TYPE": "",
    "NPUW_DCOFF_SCALE": "NO",
    "NPUW_DQ": "NO",
}
"""Links in f32, and weights decompressed by the CPU plugin: not to f16, nor dynamically."""
