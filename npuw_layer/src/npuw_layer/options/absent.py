"""Options of the original that are not here, and why: who knows them is told.

Source: fact sheet npuw §b.2, §e.5.
"""

from __future__ import annotations

ABSENT: dict[str, str] = {
    "NPU_COMPILATION_MODE_PARAMS": "it tells passes of Intel's compiler what to do, and npuc has "
    "others; INFERENCE_PRECISION_HINT, NPU_TILES and DYNAMIC_QUANTIZATION_GROUP_SIZE tell it",
    "NPUW_WEIGHTS_HANDLE_PROVIDER": "WEIGHTS_PATH or MODEL_PTR say where weights are",
    "NPUW_KOKORO_OVERLAP": "it is called NPUW_KOKORO_OVERLAP_SIZE, as OpenVINO 2026.4 has it",
    "NPUW_GQA_MANAGED": "it came after 2026.4, and lets the host put new rows into presents; here "
    "the device gives presents whole",
}
"""By name; the sentence ends "is not here: …"."""
