"""Properties on device NPU: the encoder is compiled as a static model, the decoder by NPUW.

Source: openvino_genai (StatefulImpl for NPU); ours: a property passes the number of frames to the
decoder, where openvino_genai reshapes its model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.npu import encoder_properties

_RENAMED = {
    "MAX_PROMPT_LEN": "NPUW_LLM_MAX_PROMPT_LEN",
    "MIN_RESPONSE_LEN": "NPUW_LLM_MIN_RESPONSE_LEN",
}
_UNSUPPORTED = ("BLOB_PATH", "EXPORT_BLOB", "STATIC_PIPELINE")


def split_properties(
    properties: Mapping[str, Any], eos_token_id: int, frames: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the encoder's properties, and the decoder's.

    Raises:
        PropertyError: a property is not supported, or is given under two names.
    """
    given: dict[str, Any] = {}
    for name, value in properties.items():
        new = _RENAMED.get(name, name)
        if name in _UNSUPPORTED:
            raise PropertyError(f"{name} is not supported by WhisperPipeline; use CACHE_DIR")
        if new in given:
            raise PropertyError(f"{name}: given twice, also as {new}; leave one out")
        given[new] = value
    decoder = {
        "NPU_USE_NPUW": "YES",
        "NPUW_LLM": "YES",
        "NPUW_WHISPER": "YES",
        "NPUW_WHISPER_EOS_TOKEN": eos_token_id,
        "NPUW_WHISPER_ENCODER_LEN": frames,
        **given,
    }
    return encoder_properties(given), decoder
