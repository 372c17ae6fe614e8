"""A kind of model: how it is recognised, compiled and loaded. The registry finds the kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from npuw_layer.errors import OptionError

if TYPE_CHECKING:
    from npuw_layer.api.ready_model import ReadyModel
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.devices.core_devices import CoreDevices
    from npuw_layer.options import Options
    from npuw_layer.options.base import KindOptions
    from npuw_layer.storage.model_blob.imported import BlobBytes

    AnyModel = ReadyModel[Any, Any, Any]


NO_ADAPTERS = (
    "adapters are put into language models that are compiled: not into those that read texts or "
    "hear, static ones (NPUW_LLM = NO), or blobs (BLOB_PATH), which have them"
)


class Kind(ABC):
    """The record of one kind of model.

    Records are made while options are (``options.model``), at every start: a module of records
    imports this base class and its options, and everything else where it is used.
    """

    name: ClassVar[str]
    rank: ClassVar[int] = 2
    """Kinds are asked in ascending order, those of one rank by name."""
    options: ClassVar[type[KindOptions] | None] = None
    """The options that this kind brings."""

    def requested(self, options: Options) -> str:
        """Return the option that requests this kind; empty if none is set."""
        return self.options.requested(options) if self.options else ""

    def recognises(self, path: Path, options: Options) -> bool:
        """Return whether a model that requests no kind is of this one."""
        del path, options
        return False

    @abstractmethod
    def settle(self, path: Path, options: Options) -> Options:
        """Return the options that a model of this kind is compiled with.

        Args:
            path: an IR's ``.xml``, or a Hugging Face folder.
            options: as they were given.

        Returns:
            The options with NPU_USE_NPUW, NPUW_LLM and the kind's own defaults set.

        Raises:
            OptionError: they rule out this kind.
        """

    @abstractmethod
    def compile(self, devices: CoreDevices, path: Path, options: Options) -> AnyModel:
        """Compile a model, and export it with EXPORT_BLOB.

        Args:
            devices: make the devices that options name.
            path: an IR's ``.xml``, or a Hugging Face folder.
            options: as ``settle`` returned them.

        Raises:
            NpuwError: as ``Core.compile_model``.
        """

    def adapt(
        self,
        devices: CoreDevices,
        path: Path,
        options: Options,
        adapters: Mapping[str, Any],
        mode: str,
    ) -> AnyModel:
        """Compile a model with LoRA adapters; arguments as of ``Core.compile_adapted``.

        Raises:
            OptionError: models of this kind take none.
        """
        del devices, path, options, adapters, mode
        raise OptionError(NO_ADAPTERS)

    def loads(self, blob: bytes) -> bool:
        """Return whether ``load`` takes a kind of file (``storage.container``)."""
        del blob
        return False

    def load(self, devices: CoreDevices, blob: BlobBytes) -> AnyModel:
        """Load an exported model; called if ``loads`` takes its file.

        Args:
            devices: make the devices that the blob's options name.
            blob: in clear, none of whose options the options of this run may contradict.

        Raises:
            NpuwError: as ``Core.import_model``.
        """
        raise NotImplementedError(f"{self.name}: {blob.name} is no file of this kind")


class Kinds(Protocol):
    """The registry of kinds, as ``Core`` uses it."""

    def route(self, path: Path, options: Options) -> tuple[Kind, Options]:
        """Return the kind of a model, and the options that it is compiled with.

        Raises:
            OptionError: options contradict one another, or the kind.
        """
        ...

    def loading(self, blob: bytes) -> Kind:
        """Return the kind that loads a kind of file; that of split models rejects unknown files."""
        ...


def kinds() -> Kinds:
    """Return the registry; by name, as kinds stand above this shelf."""
    return cast(Kinds, import_module("npuw_layer.kinds.registry"))


def export_target(device: Device, options: Options) -> Path | None:
    """Return where EXPORT_BLOB writes; called before compiling, so that errors come early.

    Args:
        device: what runs the model.
        options: EXPORT_BLOB and BLOB_PATH.

    Returns:
        None without EXPORT_BLOB.

    Raises:
        OptionError: the model cannot be exported, or not to that path.
    """
    if not options.export_blob:
        return None
    from npuw_layer.storage.model_blob.checks import (
        DEFAULT_PATH,
        check_compatibility,
        check_device,
        check_target,
    )

    target = Path(options.blob_path or DEFAULT_PATH).expanduser()
    check_target(target)
    check_compatibility(options)
    check_device(device, options)
    return target
