"""A model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from typing import Any

from npuw_layer.batching.engine import ContinuousBatching
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

    def create_batching(self, places: int = 0) -> ContinuousBatching:
        """Let several conversations share the device; NPUW_LLM_BATCH_SLOTS says how many at once.

        Args:
            places: how many conversations hold caches at the same time; 0 is as many as slots.
        """
        return ContinuousBatching(self._compiled, places)

    def get_property(self, name: str) -> Any:
        """Give an option by OpenVINO's name, as it was set; lengths are not rounded.

        Raises:
            OptionError: there is no such option.
        """
        if name == "LOADED_FROM_CACHE":
            return self._compiled.origin.compiled == 0
        if name not in NAMES:
            raise OptionError(f"unknown option {name!r}; known are {', '.join(NAMES)}")
        return getattr(self._options, NAMES[name])
