"""Options that run the real NPUW without an NPU, in f32 throughout.

Its submodels then run on OpenVINO's CPU plugin (docs/reference/npuw.md#npuw-on-the-cpu). By default
it computes partly in f16.
"""

from __future__ import annotations

from typing import Any

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
"""Makes the CPU plugin compute in the IR's element types."""

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
"""Links in f32; the CPU plugin decompresses weights, not to f16 and not dynamically."""
