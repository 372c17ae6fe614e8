"""A model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from typing import Any

from npuw_layer.devices.make import device_names
from npuw_layer.devices.several import SeveralDevices
from npuw_layer.errors import OptionError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.infer_request import InferRequest
from npuw_layer.options import NAMES, Options


class CompiledModel:
    """An LLM ready to run.

    Args:
        compiled: its static models.
        options: what it was compiled with.
    """

    def __init__(self, compiled: CompiledLLM, options: Options) -> None:
        self._compiled = compiled
        self._options = options

    def create_infer_request(self) -> InferRequest:
        """Begin a conversation, independent of all others."""
        return InferRequest(self._compiled)

    def get_property(self, name: str) -> Any:
        """Give an option by OpenVINO's name, as it was set; lengths are not rounded.

        Raises:
            OptionError: there is no such option.
        """
        if name == "EXECUTION_DEVICES":
            return self._execution_devices()
        if name == "LOADED_FROM_CACHE":
            return self._compiled.origin.compiled == 0
        if name not in NAMES:
            raise OptionError(f"unknown option {name!r}; known are {', '.join(NAMES)}")
        return getattr(self._options, NAMES[name])

    def _execution_devices(self) -> list[str]:
        """Which devices run its submodels now, in the order of NPUW_DEVICES."""
        names = device_names(self._options.devices)
        device = self._compiled.device
        if not isinstance(device, SeveralDevices):
            return [*names]
        used = {placement.device for placement in device.placements}
        return [*(name for name in names if name in used), *sorted(used.difference(names))]
