"""Models that consist of several static models: base of kinds that build on static models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import BinaryIO, ClassVar, TypeVar

from npuw_layer.api.model_port import ModelPort
from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.backends.protocols import Device, LoadedModel
from npuw_layer.errors import OptionError
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.options import Options
from npuw_layer.remote.context import RemoteContext
from npuw_layer.storage.programs import Origin


class CompiledParts(ABC):
    """Several static models, compiled with the same options; requests do not modify them."""

    __slots__ = ()

    @property
    @abstractmethod
    def parts(self) -> Sequence[CompiledStatic]:
        """The static models."""

    @property
    def device(self) -> Device:
        """Device, or group of devices, that runs the static models."""
        return self.parts[-1].device

    @property
    def options(self) -> Options:
        """Options of the compilation."""
        return self.parts[-1].options

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """The static models by name."""
        return {name: loaded for part in self.parts for name, loaded in part.submodels.items()}

    @property
    def origin(self) -> Origin:
        """Origin of the programs: compiled or cached."""
        origins = [part.origin for part in self.parts]
        return Origin(
            seconds=sum(origin.seconds for origin in origins),
            compiled=sum(origin.compiled for origin in origins),
            cached=sum(origin.cached for origin in origins),
        )

    @property
    def shared(self) -> None:
        """None: weights are not shared with other processes."""
        return


P = TypeVar("P", bound=CompiledParts)
Input = TypeVar("Input", bound=ModelPort)
Output = TypeVar("Output", bound=ModelPort)


class PartsModel(ReadyModel[P, Input, Output]):
    """A model of several static models, which is not exported."""

    option: ClassVar[str]
    """Option that requests the kind of model, for messages."""

    def get_context(self) -> RemoteContext:
        """Return the context of the Core, whose tensors requests accept."""
        return RemoteContext(self._compiled.parts[-1].npu)

    def _write(self, file: BinaryIO) -> None:
        raise OptionError(
            f"{self.option} = YES: export is not supported, as in NPUW; set CACHE_DIR to keep the "
            "compiled models"
        )
