"""The record of a kind of model: recognition, compilation and loading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from npuw_layer.errors import OptionError

if TYPE_CHECKING:
    from npuw_layer.api.ready_model import ReadyModel
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.core_devices import CoreDevices
    from npuw_layer.options import Options
    from npuw_layer.options.kinds import KindOptions
    from npuw_layer.storage.model_blob.imported import BlobBytes

    AnyModel = ReadyModel[Any, Any, Any]


class Kind(ABC):
    """The record of one kind of model.

    Records are created together with options, at every start. Their modules therefore import only
    this base class and the kind's options at the top, and everything else on use.
    """

    name: ClassVar[str]
    rank: ClassVar[int] = 2
    """Rank in the order in which kinds are tried: ascending, then by name."""
    options: ClassVar[type[KindOptions] | None] = None
    """The option group of this kind."""

    def requested(self, options: Options) -> str:
        """Return the option that requests this kind; empty if none is set."""
        return self.options.requested(options) if self.options else ""

    def recognises(self, path: Path, options: Options) -> bool:
        """Return whether a model for which no kind is requested is of this kind."""
        del path, options
        return False

    @abstractmethod
    def settle(self, path: Path, options: Options) -> Options:
        """Return options with NPU_USE_NPUW, NPUW_LLM and the kind's own defaults set.

        Args:
            path: an IR's ``.xml``, or a Hugging Face folder.
            options: the options as given.

        Raises:
            OptionError: the options exclude this kind.
        """

    def compile(self, devices: CoreDevices, path: Path, options: Options) -> AnyModel:
        """Compile a model with settled options, and export it with EXPORT_BLOB.

        Raises:
            NpuwError: as ``Core.compile_model``.
        """
        device = self.device(devices, options)
        target = _export_target(device, options)
        model = self.build(devices, device, path, options)
        if target is not None:
            model.export_model(target)
        return model

    @abstractmethod
    def device(self, devices: CoreDevices, options: Options) -> Device:
        """Return the device of a model; errors as ``compile``."""

    @abstractmethod
    def build(self, devices: CoreDevices, device: Device, path: Path, options: Options) -> AnyModel:
        """Compile a model for a device; errors as ``compile``."""

    def adapted(self, adapters: Mapping[str, Any], mode: str) -> Kind:
        """Return the kind with LoRA adapters; see ``Core.compile_adapted``.

        Raises:
            OptionError: models of this kind take no adapters.
        """
        del adapters, mode
        raise OptionError(NO_ADAPTERS)

    def reshaped(self, shapes: Mapping[str, Sequence[int]]) -> Kind:
        """Return the kind with shapes of inputs; see ``Core.compile_reshaped``.

        Raises:
            OptionError: models of this kind have no shapes to choose.
        """
        del shapes
        raise OptionError(ONLY_STATIC)

    def loads(self, blob: bytes) -> bool:
        """Return whether ``load`` accepts a file format (``storage.container``)."""
        del blob
        return False

    def load(self, devices: CoreDevices, blob: BlobBytes) -> AnyModel:
        """Load an exported model from a decrypted blob; errors as ``Core.import_model``."""
        raise NotImplementedError(f"{blob.name} is not a file of the kind {self.name}")


NO_ADAPTERS = (
    "LoRA adapters: only language models accept them, when they are compiled; not models that read "
    "texts or audio, static models (NPUW_LLM = NO), or blobs (BLOB_PATH), which contain theirs"
)

ONLY_STATIC = (
    "shapes of inputs: only static models (NPUW_LLM = NO) are reshaped, and not those of blobs "
    "(BLOB_PATH), which have been compiled"
)


class Kinds(Protocol):
    """Interface of the registry of kinds for ``Core``."""

    def route(self, path: Path, options: Options) -> tuple[Kind, Options]:
        """Return the kind of a model, and its settled options; OptionError on contradictions."""
        ...

    def loading(self, blob: bytes) -> Kind:
        """Return the kind that loads a format; the kind of split models rejects unknown files."""
        ...


def kinds() -> Kinds:
    """Return the registry, imported by name, as kinds are a higher layer."""
    return cast(Kinds, import_module("npuw_layer.kinds.registry"))


def _export_target(device: Device, options: Options) -> Path | None:
    """Return the checked target of EXPORT_BLOB, so that its errors come before compiling."""
    if not options.export_blob:
        return None
    from npuw_layer.storage.model_blob import checks

    target = Path(options.blob_path or checks.DEFAULT_PATH).expanduser()
    checks.check_target(target)
    checks.check_compatibility(options)
    checks.check_device(device, options)
    return target
