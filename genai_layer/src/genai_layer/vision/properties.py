"""Properties on device NPU: NPUW's are for the language model, the others for all models.

Source: openvino_genai, docs/reference/genai.md#vision-language-models; ours: openvino_genai runs
the vision encoder on the CPU then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.npu import StaticLengths, encoder_properties, npu_properties

_UNSUPPORTED = ("BLOB_PATH", "EXPORT_BLOB")


def split_properties(
    properties: Mapping[str, Any], step: int = 1
) -> tuple[dict[str, Any], dict[str, Any], StaticLengths | None]:
    """Return the language model's properties, those of the other models, and the lengths.

    Args:
        properties: the pipeline's.
        step: tokens of a generate step.

    Raises:
        PropertyError: a property is not supported, or see ``npu_properties``.
    """
    for name in _UNSUPPORTED:
        if name in properties:
            raise PropertyError(f"{name} is not supported by VLMPipeline; use CACHE_DIR")
    language, lengths = npu_properties(properties, step)
    return language, encoder_properties(language), lengths
