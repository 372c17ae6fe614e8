"""Base of compiled models of all kinds, and the programs that they need."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Protocol, TypeVar, overload

from npuw_layer.api.given_inputs import Inputs
from npuw_layer.api.model_port import ModelPort, PortKey, only_port
from npuw_layer.api.properties import EXECUTION_DEVICES, LOADED_FROM_CACHE, Facts, read_property
from npuw_layer.backends.protocols import Device, LoadedModel
from npuw_layer.backends.tensor import Uncopied
from npuw_layer.execution.devices.report import execution_devices
from npuw_layer.options import Options
from npuw_layer.storage.model_blob.exported import export_to
from npuw_layer.storage.programs import Origin

if TYPE_CHECKING:
    from npuw_layer.api.request import Request
    from npuw_layer.api.results import Results
    from npuw_layer.weights.sharing.arena import SharedArena
    from npuw_layer.weights.sharing.usage import SharingReport


class Compiled(Protocol):
    """Loaded programs, as far as all kinds of models have them."""

    @property
    def device(self) -> Device:
        """The device that runs the programs."""
        ...

    @property
    def options(self) -> Options:
        """The options of the compilation."""
        ...

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """The static models by name."""
        ...

    @property
    def origin(self) -> Origin:
        """The origin of the programs."""
        ...

    @property
    def shared(self) -> SharedArena | None:
        """Weights that other processes use too."""
        ...


C = TypeVar("C", bound=Compiled)
Input = TypeVar("Input", bound=ModelPort)
Output = TypeVar("Output", bound=ModelPort)


class ReadyModel(Uncopied, ABC, Generic[C, Input, Output]):
    """A compiled model.

    Args:
        compiled: its programs.
    """

    def __init__(self, compiled: C) -> None:
        self._compiled = compiled
        self._own: Request | None = None

    @property
    @abstractmethod
    def inputs(self) -> list[Input]:
        """Its inputs, without variables."""

    @property
    @abstractmethod
    def outputs(self) -> list[Output]:
        """Its outputs, without variables."""

    def input(self, key: PortKey | None = None, /) -> Input:
        """Return an input by name or number; without a key, the only one.

        Raises:
            TensorError: there is none, or there are several.
        """
        return only_port(self.inputs, key, "input")

    def output(self, key: PortKey | None = None, /) -> Output:
        """Return an output by name or number; without a key, the only one.

        Raises:
            TensorError: there is none, or there are several.
        """
        return only_port(self.outputs, key, "output")

    @abstractmethod
    def create_infer_request(self) -> Request:
        """Make a request, independent of all others."""

    def __call__(
        self, inputs: Inputs = None, share_inputs: bool = True, share_outputs: bool = False
    ) -> Results:
        """Run once, on a request of the model's own, which keeps its state.

        Args:
            inputs: as ``infer`` of a request takes them.
            share_inputs: as for ``infer``.
            share_outputs: as for ``infer``.

        Raises:
            NpuwError: as ``infer``; RequestBusy if another thread is in here.
        """
        if self._own is None:
            self._own = self.create_infer_request()
        return self._own.infer(inputs, share_inputs, share_outputs)

    def infer_new_request(self, inputs: Inputs = None) -> Results:
        """Run once, on a new request."""
        return self.create_infer_request().infer(inputs)

    @abstractmethod
    def _write(self, file: BinaryIO) -> None:
        """Write the model to a stream, as ``export_model`` says."""

    def sharing(self) -> SharingReport | None:
        """Report what sharing weights with other processes saves; None if none are shared."""
        return None if self._compiled.shared is None else self._compiled.shared.report()

    @overload
    def export_model(self, target: None = None, /) -> bytes: ...
    @overload
    def export_model(self, target: str | os.PathLike[str] | BinaryIO, /) -> None: ...

    def export_model(
        self, target: str | os.PathLike[str] | BinaryIO | None = None, /
    ) -> bytes | None:
        """Write all programs to one file, which ``Core.import_model`` loads.

        Args:
            target: a path, whose file is replaced when all is written; or a stream. None gives the
                bytes.

        Raises:
            NpuwUsageError: there is no writing to the target.
            OptionError: the device's programs cannot be exported.
            ModelError: the model's files have changed since it was compiled.
            NpuwFault: the disk is full, the folder is read-only, or what is there is no regular
                file.
        """
        return export_to(target, self._write)

    def get_property(self, name: str) -> Any:
        """Return an option by OpenVINO's name, as it was set; lengths are not rounded.

        Args:
            name: of an option, maps of stages among them; or SUPPORTED_PROPERTIES, a dict of all
                names, each with "RO"; or LOADED_FROM_CACHE; or EXECUTION_DEVICES.

        Raises:
            OptionError: there is no such option.
        """
        return read_property(name, self._compiled.options, self._facts())

    def _facts(self) -> Facts:
        """Properties that are no options."""
        compiled = self._compiled
        return {
            LOADED_FROM_CACHE: lambda: compiled.origin.from_cache,
            EXECUTION_DEVICES: lambda: execution_devices(compiled.submodels, compiled.options),
        }
