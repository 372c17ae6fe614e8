"""A static model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from typing import Any

from npuw_layer.errors import TensorError
from npuw_layer.options import Options
from npuw_layer.properties import EXECUTION_DEVICES, LOADED_FROM_CACHE, Facts, read_property
from npuw_layer.remote.context import RemoteContext
from npuw_layer.static.compiled import CompiledStatic
from npuw_layer.static.infer_request import StaticInferRequest
from npuw_layer.static.port import Port, PortKey, find_port


class StaticCompiledModel:
    """A static model ready to run.

    Args:
        compiled: its program.
        options: what it was compiled with.
        context: where its requests' memory is.
    """

    def __init__(self, compiled: CompiledStatic, options: Options, context: RemoteContext) -> None:
        self._compiled = compiled
        self._options = options
        self._context = context

    @property
    def inputs(self) -> list[Port]:
        """Its inputs, without variables."""
        return list(self._compiled.inputs)

    @property
    def outputs(self) -> list[Port]:
        """Its outputs, without variables."""
        return list(self._compiled.outputs)

    def input(self, key: PortKey | None = None, /) -> Port:
        """Give an input by name or number; the only one without.

        Raises:
            TensorError: there is none, or there are several.
        """
        return _one(self.inputs, key, "input")

    def output(self, key: PortKey | None = None, /) -> Port:
        """Give an output by name or number; the only one without.

        Raises:
            TensorError: there is none, or there are several.
        """
        return _one(self.outputs, key, "output")

    def create_infer_request(self) -> StaticInferRequest:
        """Make a request, independent of all others."""
        return StaticInferRequest(self._compiled)

    def get_context(self) -> RemoteContext:
        """Give the context whose tensors its requests bind in place: that of its Core."""
        return self._context

    def get_property(self, name: str) -> Any:
        """Give an option, or a fact, by OpenVINO's name, as that of a language model does.

        Raises:
            OptionError: there is no such option.
        """
        facts: Facts = {
            LOADED_FROM_CACHE: lambda: self._compiled.origin.compiled == 0,
            EXECUTION_DEVICES: lambda: ["NPU"],
        }
        return read_property(name, self._options, facts)


def _one(ports: list[Port], key: PortKey | None, side: str) -> Port:
    if key is None and len(ports) != 1:
        raise TensorError(f"the model has {len(ports)} {side}s; say which by name or number")
    return find_port(ports, 0 if key is None else key, side)
