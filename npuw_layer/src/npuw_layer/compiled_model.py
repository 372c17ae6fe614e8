"""A model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from npuw_layer.errors import OptionError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.infer_request import InferRequest
from npuw_layer.options import NAMES, Options, nearest

SUPPORTED_PROPERTIES = "SUPPORTED_PROPERTIES"
LOADED_FROM_CACHE = "LOADED_FROM_CACHE"


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

        Args:
            name: of an option, maps of stages among them; or SUPPORTED_PROPERTIES, a dict of all
                names, each with "RO"; or LOADED_FROM_CACHE.

        Raises:
            OptionError: there is no such option.
        """
        if name == SUPPORTED_PROPERTIES:
            return dict.fromkeys((SUPPORTED_PROPERTIES, LOADED_FROM_CACHE, *NAMES), "RO")
        if name == LOADED_FROM_CACHE:
            return self._compiled.origin.compiled == 0
        if name not in NAMES:
            near = nearest(name, (SUPPORTED_PROPERTIES, LOADED_FROM_CACHE, *NAMES))
            hint = f"did you mean {near}?" if near else f"{SUPPORTED_PROPERTIES} lists all"
            raise OptionError(f"unknown property {name!r}; {hint}")
        return deepcopy(getattr(self._options, NAMES[name]))
