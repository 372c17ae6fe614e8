"""Arguments of ``LLMPipeline``, whose positions depend on the tokenizer.

Source: openvino_genai.LLMPipeline, docs/reference/genai.md#construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.properties import with_dictionary
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments by name."""

    tokenizer: Tokenizer | None
    """Tokenizer of the caller; None for the folder's own."""
    device: str
    properties: dict[str, Any]


def read_arguments(
    tokenizer: Tokenizer | str | None,
    device: str | Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
    properties: Mapping[str, Any],
) -> Arguments:
    """Sort the arguments after the folder: (tokenizer, device, dictionary) or (device, dictionary).

    Raises:
        TypeError: there is neither a tokenizer nor a device.
        PropertyError: there are two devices.
    """
    if isinstance(device, Mapping):  # (folder, device, dictionary)
        device, config = None, device
    if config is not None:
        properties = with_dictionary(config, properties, stacklevel=4)
    if isinstance(tokenizer, str):  # (folder, device)
        if device is not None:
            raise PropertyError("tokenizer is not a Tokenizer; pass one, or the device alone")
        tokenizer, device = None, tokenizer
    elif tokenizer is None and device is None:
        raise TypeError('LLMPipeline: the device is missing; pass it, e.g. device="NPU"')
    return Arguments(tokenizer, "CPU" if device is None else device, dict(properties))
