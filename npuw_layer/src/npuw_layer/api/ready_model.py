"""Base of compiled models of all kinds, and the interface of their programs."""

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
    """Interface of loaded programs, common to all kinds of models."""

    @property
    def device(self) -> Device:
        """Device that runs the programs."""
        ...

    @property
    def options(self) -> Options:
        """Options of the compilation."""
        ...

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """Static models by name."""
        ...

    @property
    def origin(self) -> Origin:
        """Origin of the programs."""
        ...

    @property
    def shared(self) -> SharedArena | None:
        """Weights shared with other processes."""
        ...


C = TypeVar("C", bound=Compiled)
Input = TypeVar("Input", bound=ModelPort)
Output = TypeVar("Output", bound=ModelPort)


class ReadyModel(Uncopied, ABC, Generic[C, Input, Output]):
    """A compiled model.

    Args:
        compiled: the model's loaded programs.
    """

    def __init__(self, compiled: C) -> None:
        self._compiled = compiled
        self._own: Request | None = None

    @property
    @abstractmethod
    def inputs(self) -> list[Input]:
        """Inputs of the model, without variables."""

    @property
    @abstractmethod
    def outputs(self) -> list[Output]:
        """Outputs of the model, without variables."""

    def input(self, key: PortKey | None = None, /) -> Input:
        """Return an input by name or index; without a key, the only one.

        Raises:
            TensorError: no such input exists, or several exist without a key.
        """
        return only_port(self.inputs, key, "input")

    def output(self, key: PortKey | None = None, /) -> Output:
        """Return an output by name or index; without a key, the only one.

        Raises:
            TensorError: no such output exists, or several exist without a key.
        """
        return only_port(self.outputs, key, "output")

    @abstractmethod
    def create_infer_request(self) -> Request:
        """Create an independent request."""

    def __call__(
        self, inputs: Inputs = None, share_inputs: bool = True, share_outputs: bool = False
    ) -> Results:
        """Run one inference on the model's own request, which keeps its state.

        Args:
            inputs: as for ``infer`` of a request.
            share_inputs: as for ``infer``.
            share_outputs: as for ``infer``.

        Raises:
            NpuwError: as ``infer``; RequestBusy if another thread is in this call.
        """
        if self._own is None:
            self._own = self.create_infer_request()
        return self._own.infer(inputs, share_inputs, share_outputs)

    def infer_new_request(self, inputs: Inputs = None) -> Results:
        """Run one inference on a new request."""
        return self.create_infer_request().infer(inputs)

    @abstractmethod
    def _write(self, file: BinaryIO) -> None:
        """Write the model to a stream; see ``export_model``."""

    def sharing(self) -> SharingReport | None:
        """Return the savings from sharing weights with other processes; None without sharing."""
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
            target: a path, whose file is replaced when writing is complete; or a stream. None
                returns the bytes.

        Raises:
            NpuwUsageError: the target is not writable.
            OptionError: the device's programs cannot be exported.
            ModelError: the model's files have changed since compilation.
            NpuwFault: the disk is full, the folder is read-only, or the path is not a regular file.
        """
        return export_to(target, self._write)

    def get_property(self, name: str) -> Any:
        """Return an option by OpenVINO's name, as set; lengths are not rounded.

        Args:
            name: name of an option, including maps of stages; or SUPPORTED_PROPERTIES, a dict of
                all names, each with "RO"; or LOADED_FROM_CACHE; or EXECUTION_DEVICES.

        Raises:
            OptionError: no such option exists.
        """
        return read_property(name, self._compiled.options, self._facts())

    def _facts(self) -> Facts:
        """Return properties other than options."""
        compiled = self._compiled
        return {
            LOADED_FROM_CACHE: lambda: compiled.origin.from_cache,
            EXECUTION_DEVICES: lambda: execution_devices(compiled.submodels, compiled.options),
        }
