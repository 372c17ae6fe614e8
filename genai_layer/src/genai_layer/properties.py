"""Properties of a pipeline: names are checked, values become text and numbers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.property_values import plain

_ADAPTERS = "adapters"


def with_dictionary(
    config: Mapping[str, Any], properties: Mapping[str, Any], stacklevel: int = 3
) -> dict[str, Any]:
    """Merge both sources of properties; keyword arguments override the dictionary.

    Args:
        config: the dictionary.
        properties: the keyword arguments.
        stacklevel: that of the warning; 3 names the caller of the calling function.
    """
    warnings.warn(
        "properties in a dictionary are deprecated, as in openvino_genai; pass **config",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
    return {**config, **properties}


def taken_adapters(properties: dict[str, Any], adapters: object) -> AdapterConfig | None:
    """Remove a pipeline's adapters from its properties and return them.

    Raises:
        PropertyError: they are not an AdapterConfig.
    """
    given = properties.pop(_ADAPTERS, None)
    found = given if adapters is None else adapters
    if found is None or isinstance(found, AdapterConfig):
        return found
    raise PropertyError(f"adapters = {found!r}: must be an AdapterConfig; pass AdapterConfig(…)")


def check_names(properties: Mapping[str, Any]) -> None:
    """Reject names and values that cannot be properties.

    Raises:
        PropertyError: a name is not upper case, or a value is None.
    """
    for name, value in properties.items():
        if name == _ADAPTERS:
            raise PropertyError(
                "adapters: only LLMPipeline and VLMPipeline support them; leave them out"
            )
        if name != str(name).upper():
            raise PropertyError(
                f"property {name!r} is not supported; properties are upper case, and generation "
                "parameters go to generate()"
            )
        if value is None:
            raise PropertyError(f"property {name} is None; leave it out")


def read_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties with text and numbers as values.

    Raises:
        PropertyError: see ``check_names``.
    """
    check_names(properties)
    return {str(name): plain(value) for name, value in properties.items()}
