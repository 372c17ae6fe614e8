"""A static model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, overload

from npuw_layer.devices.used import execution_devices
from npuw_layer.errors import TensorError
from npuw_layer.model_blob.exported import export_to
from npuw_layer.properties import EXECUTION_DEVICES, LOADED_FROM_CACHE, Facts, read_property
from npuw_layer.remote.context import RemoteContext
from npuw_layer.static.compiled import CompiledStatic
from npuw_layer.static.exported import export_static
from npuw_layer.static.infer_request import StaticInferRequest
from npuw_layer.static.port import Port, PortKey, find_port

if TYPE_CHECKING:
    from npuw_layer.sharing.usage import SharingReport


class StaticCompiledModel:
    """A static model ready to run.

    Args:
        compiled: its program.
    """

    def __init__(self, compiled: CompiledStatic) -> None:
        self._compiled = compiled

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
        return RemoteContext(self._compiled.npu)

    def sharing(self) -> SharingReport | None:
        """Tell what sharing weights with other processes saves; None if none are shared."""
        return None if self._compiled.shared is None else self._compiled.shared.report()

    @overload
    def export_model(self, target: None = None, /) -> bytes: ...
    @overload
    def export_model(self, target: str | Path | BinaryIO, /) -> None: ...

    def export_model(self, target: str | Path | BinaryIO | None = None, /) -> bytes | None:
        """Write the program to a file, which ``Core.import_model`` loads.

        Args:
            target: a path, whose file is replaced when all is written; or a stream. None gives the
                bytes.

        Raises:
            OptionError: the device's programs cannot be exported.
            ModelError: the model's files have changed since it was compiled.
            NpuwFault: the disk is full, or the folder is read-only.
        """
        return export_to(target, partial(export_static, self._compiled))

    def get_property(self, name: str) -> Any:
        """Give an option, or a fact, by OpenVINO's name, as that of a language model does.

        Raises:
            OptionError: there is no such option.
        """
        compiled = self._compiled
        facts: Facts = {
            LOADED_FROM_CACHE: lambda: compiled.origin.from_cache,
            EXECUTION_DEVICES: lambda: execution_devices(compiled.device, compiled.options),
        }
        return read_property(name, compiled.options, facts)


def _one(ports: list[Port], key: PortKey | None, side: str) -> Port:
    if key is None and len(ports) != 1:
        raise TensorError(f"the model has {len(ports)} {side}s; say which by name or number")
    return find_port(ports, 0 if key is None else key, side)
