"""Properties of a pipeline: names are checked, values become text and numbers.

Values are text and numbers, from the objects that scripts pass. Objects of the package openvino are
recognised by their interface, without importing it.

Some properties of openvino_genai choose among implementations; there is one here. Values are
accepted if openvino_genai ignores them on the device, or if they only change its speed or memory;
the others are rejected.

Source: docs/reference/genai.md#property-values, docs/reference/genai.md#construction,
docs/reference/genai.md#unsupported-on-npu.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from genai_layer.checked import read_as
from genai_layer.errors import PropertyError
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.parameters import plain as scalar
from genai_layer.scheduler import SchedulerConfig

_LOG_LEVELS = {"NO": "LOG_NONE", "ERR": "LOG_ERROR"}


def plain(value: Any) -> Any:
    """Return a value as OpenVINO prints it; values of other types are returned unchanged.

    Args:
        value: text, a number or a dictionary; or numpy's number, a path, a Python enumeration, or
            OpenVINO's element type (``openvino.Type``), enumeration or ``OVAny``.
    """
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (any mapping)
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (any path)
    return _openvino(scalar(value))


def _openvino(value: Any) -> Any:
    """Return the printed form of OpenVINO's objects; other objects unchanged."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType] (any value)
    if kind.__name__ == "OVAny":
        return plain(value.value)
    if hasattr(kind, "__members__"):  # OpenVINO's enumerations are not Python's
        name = str(value.name)
        return _LOG_LEVELS.get(name, f"LOG_{name}") if kind.__name__ == "Level" else name
    return value.to_string() if callable(getattr(kind, "to_string", None)) else value


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


_BY_DEVICE = "DEVICE_PROPERTIES"


def for_device(properties: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Return a pipeline's properties, with those of its device in DEVICE_PROPERTIES.

    They replace properties of the same name, and those of other devices are left out, as in
    OpenVINO.

    Raises:
        ArgumentError: DEVICE_PROPERTIES has no dictionary for each device.
    """
    found = dict(properties)
    if _BY_DEVICE not in found:
        return found
    hint = Mapping[str, Mapping[str, Any]]
    by_device: Any = read_as(_BY_DEVICE, plain(found.pop(_BY_DEVICE)), hint)
    return found | dict(by_device.get(device, {}))


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


def take_mechanisms(properties: dict[str, Any], device: str) -> None:
    """Remove the properties that have no effect, and scheduler_config, which LLMPipeline has read.

    Raises:
        PropertyError: a value is unknown, or would have another effect.
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
    if not value.max_num_seqs:
        raise PropertyError(f"{name}: max_num_seqs = 0: set it to 1 or more")
    for option in ("use_cache_eviction", "use_sparse_attention"):
        if device != "NPU" and getattr(value, option):
            raise PropertyError(f"{name}: {option} is not supported; set it to False")


_CHECKS: dict[str, Callable[[str, Any, str], None]] = {
    "ATTENTION_BACKEND": _attention_backend,
    "STATIC_PIPELINE": _static_pipeline,
    "scheduler_config": _scheduler_config,
}
