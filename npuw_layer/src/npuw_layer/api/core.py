"""``Core``, which compiles and imports models, with the interface of OpenVINO's ``Core``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from compiler_layer.rewriting.garbage import collected_later
from driver_layer.support.progress import Listener, reported_to
from npuw_layer.api.kind import NO_ADAPTERS, ONLY_STATIC, kinds
from npuw_layer.api.properties import CoreProperties, Properties
from npuw_layer.backends.protocols import Compiler, Device
from npuw_layer.backends.tensor import Uncopied
from npuw_layer.errors import OptionError, RemoteError
from npuw_layer.execution.core_devices import CoreDevices
from npuw_layer.options import parse_options
from npuw_layer.options.contradictions import idle
from npuw_layer.remote.context import RemoteContext
from npuw_layer.remote.properties import L0_CONTEXT
from npuw_layer.remote.tensor import AnyTensor, as_tensor, values_of
from npuw_layer.storage.memory_model import MemoryModel, model_path
from npuw_layer.storage.source import Source, open_blob

if TYPE_CHECKING:
    from npuw_layer.api.kind import AnyModel

_LOG = logging.getLogger(__name__)

_NPU = "NPU"
"""Name of the only device."""


class Core(Uncopied):
    """Compiler of models for the NPU; all models of a Core share memory without copies.

    Args:
        compiler: replaces the compiler of NPUW_COMPILER.
        device: replaces the devices of NPUW_DEVICES.
    """

    def __init__(self, compiler: Compiler | None = None, device: Device | None = None) -> None:
        self._devices = CoreDevices(compiler, device)
        self._properties = CoreProperties(self._devices.npu)

    @property
    def available_devices(self) -> list[str]:
        """Device names that ``compile_model`` accepts."""
        return [_NPU]

    def get_available_devices(self) -> list[str]:
        """Return ``available_devices``."""
        return self.available_devices

    @overload
    def set_property(self, properties: Properties, /) -> None: ...
    @overload
    def set_property(self, device_name: str, properties: Properties, /) -> None: ...

    def set_property(
        self, device_name: str | Properties, properties: Properties | None = None, /
    ) -> None:
        """Set default options for all later models.

        Args:
            device_name: "NPU"; optional.
            properties: options under OpenVINO's names, or a pair of one name and its value.
                Imported models use only those of a run; the blob determines all others.

        Raises:
            OptionError: as ``compile_model``, or a property is read-only; nothing is set then.
        """
        given: object = properties
        if isinstance(device_name, str):
            _check_name(device_name)
        else:
            given = device_name
        self._properties.update(given)

    def get_property(self, device_name: str, name: str | None = None, /) -> Any:
        """Return a default option of all models, or a fact about the device.

        Args:
            device_name: "NPU"; optional.
            name: name of an option; or SUPPORTED_PROPERTIES, a dict of all names with "RO" or "RW";
                or a fact, such as NPU_MAX_TILES (``backends.protocols.DEVICE_FACTS``).

        Raises:
            OptionError: no such property or device exists.
        """
        if name is not None:
            _check_name(device_name)
        return self._properties.read(device_name if name is None else name)

    def read_model(self, model: str | bytes, weights: AnyTensor) -> MemoryModel:
        """Return a model that is in memory, e.g. because its files are encrypted.

        Args:
            model: content of an ``openvino_model.xml``.
            weights: content of the ``.bin``, as a tensor or an array of bytes; copied.

        Raises:
            ModelError: the model is not text, or the system has no memory for it; it needs Linux.
                ``compile_model`` raises errors of the content.
            TensorError: the weights are not a tensor.
        """
        return MemoryModel(model, values_of(as_tensor(weights)))

    def compile_model(
        self,
        model: str | Path | MemoryModel,
        device_name: str = "NPU",
        config: Mapping[str, Any] | None = None,
    ) -> AnyModel:
        """Compile a model of the kind that an option requests, or that recognises the model.

        Dynamic models are split as language models; static ones run directly, or through NPUW.

        Args:
            model: an ``openvino_model.xml``, a Hugging Face folder, or a result of ``read_model``.
            device_name: "NPU".
            config: options under OpenVINO's names; see ``npuw_layer.options``. With BLOB_PATH, the
                blob is imported and nothing is compiled, unless EXPORT_BLOB requests to write it.

        Raises:
            OptionError: an option is unknown or wrong.
            ModelError: the model cannot be read, or is not supported.
            BlobError: the file of BLOB_PATH is damaged.
            NpuwError: compiling or loading failed.
        """
        _check_name(device_name)
        path = model_path(model)
        given = self._properties.to_compile(config)
        options = parse_options(given)
        options.set_log_level()
        for reason in (*options.alike(), *idle(options)):
            _LOG.info("%s", reason)
        if options.blob_path and not options.export_blob:
            source = Path(options.blob_path).expanduser()
            return self._load(source, self._properties.to_import(config), path)
        with collected_later():
            kind, options = kinds().route(path, options)
            return kind.compile(self._devices, path, options)

    def reporting_progress(self, listener: Listener, /) -> AbstractContextManager[None]:
        """Return a context in which compilations of the caller's thread report their progress.

        Args:
            listener: called with an activity (reading a file, compiling), the number of units that
                are done, their total, and the unit's name (B: bytes).
        """
        return reported_to(listener)

    def adaptable_matmuls(self, model: str | Path | MemoryModel, /) -> dict[str, tuple[int, int]]:
        """Return the matmuls of a model that LoRA adapters can target in ``compile_adapted``.

        Args:
            model: as for ``compile_model``.

        Returns:
            The matmuls y = x Wᵀ by name, in order, with the widths of x and of y.

        Raises:
            ModelError: the model cannot be read.
        """
        from npuw_layer.storage.read_model import read_model

        # Imported by name: traits are a higher layer.
        lora = import_module("npuw_layer.traits.lora.insert")
        with collected_later():
            found = lora.adaptable_matmuls(read_model(model_path(model)))
            return {name: lora.widths(op) for name, op in found.items()}

    def compile_adapted(
        self,
        model: str | Path | MemoryModel,
        device_name: str,
        config: Mapping[str, Any],
        adapters: Mapping[str, Any],
        mode: str = "DYNAMIC",
        /,
    ) -> AnyModel:
        """Compile a language model with LoRA adapters.

        Args:
            model: as for ``compile_model``.
            device_name: "NPU".
            config: as for ``compile_model``; BLOB_PATH is the file to export to.
            adapters: A, alpha and B (``traits.lora.low_rank.LowRank``) of each matmul, by the
                names of ``adaptable_matmuls``.
            mode: DYNAMIC, states of rank 0 to NPUW_LLM_MAX_LORA_RANK, which requests set;
                STATIC_RANK, states of at most the adapters' rank; STATIC, constants next to the
                weights; FUSE, added to the weights, which must be floats.

        Raises:
            OptionError: as ``compile_model``; or the rank is too large, the model is not of the
                kind of language models, or it is imported.
            ModelError: the model cannot be read, or not adapted with these adapters.
            NpuwError: compiling or loading failed.
        """
        _check_name(device_name)
        path = model_path(model)
        given = self._properties.to_compile(config)
        kind, options = kinds().route(path, parse_options(given))
        if options.blob_path and not options.export_blob:
            raise OptionError(NO_ADAPTERS)
        with collected_later():
            return kind.adapted(adapters, mode).compile(self._devices, path, options)

    def compile_reshaped(
        self,
        model: str | Path | MemoryModel,
        device_name: str,
        config: Mapping[str, Any],
        shapes: Mapping[str, Sequence[int]],
        /,
    ) -> AnyModel:
        """Compile a model with open dimensions as a static one, as ``Model.reshape`` makes it.

        Args:
            model: as for ``compile_model``.
            device_name: "NPU".
            config: as for ``compile_model``; BLOB_PATH is the file to export to.
            shapes: shapes of inputs by name.

        Raises:
            OptionError: as ``compile_model``; or the model is not of the kind of static models, or
                it is imported.
            ModelError: the model cannot be read, does not accept the shapes, or is not static then.
            NpuwError: compiling or loading failed.
        """
        _check_name(device_name)
        path = model_path(model)
        kind, options = kinds().route(path, parse_options(self._properties.to_compile(config)))
        if options.blob_path and not options.export_blob:
            raise OptionError(ONLY_STATIC)
        with collected_later():
            return kind.reshaped(shapes).compile(self._devices, path, options)

    def import_model(
        self,
        model: Source,
        device_name: str = "NPU",
        config: Mapping[str, Any] | None = None,
    ) -> AnyModel:
        """Load a model that ``export_model`` wrote.

        Args:
            model: the path of a file, which is mapped; a stream; or bytes, also as a tensor.
                Exports of static models for the NPU itself have the format of OpenVINO's plugin.
            device_name: "NPU".
            config: WEIGHTS_PATH or MODEL_PTR for a blob without weights, CACHE_DIR to remember
                verified blobs, NPU_IMPORT_RAW_BLOB for a bare ELF; other options must equal those
                of the compilation.

        Raises:
            BlobError: the blob is damaged; or, as BlobVersionError, made by other versions.
            OptionError: an option is wrong or contradicts the blob, or the weights are not found.
            ModelError: the weights are not those of the blob.
        """
        _check_name(device_name)
        return self._load(model, self._properties.to_import(config))

    def _load(
        self, source: Source, config: Mapping[str, Any], model: Path | None = None
    ) -> AnyModel:
        """Load an exported model.

        Args:
            source: as for ``import_model``.
            config: the options of this run.
            model: the model that the blob was made of, if known.
        """
        # Imported here: few starts load such files.
        from npuw_layer.storage.container import kind_of
        from npuw_layer.storage.model_blob.imported import BlobBytes
        from npuw_layer.storage.native_blob.container import MAGIC, looks_native

        blob = BlobBytes(*open_blob(source), config, model)
        given = parse_options(config)
        given.set_log_level()
        native = not kind_of(blob.content) and (given.import_raw_blob or looks_native(blob.content))
        with collected_later():
            blob = blob if native else blob.in_clear()
            kind = kinds().loading(MAGIC if native else kind_of(blob.content))
            return kind.load(self._devices, blob)

    def get_default_context(self, device_name: str = "NPU", /) -> RemoteContext:
        """Return the context whose remote tensors models of this Core bind in place.

        Raises:
            OptionError: no such device exists.
        """
        return self.create_context(device_name, {})

    def create_context(
        self, device_name: str, properties: Mapping[str, Any] | None = None, /
    ) -> RemoteContext:
        """Return a remote context of a device; those of one Core and platform share one memory.

        Args:
            device_name: "NPU".
            properties: NPU_PLATFORM, if not the default; L0_CONTEXT, which must be this Core's own.

        Raises:
            OptionError: no such device, platform or property exists.
            RemoteError: L0_CONTEXT belongs to another Core.
        """
        _check_name(device_name)
        given = self._properties.to_compile(properties)
        wanted = given.pop(L0_CONTEXT, None)
        npu = self._devices.remote(parse_options(given))
        if wanted is not None and wanted is not npu.memory_space:
            raise RemoteError("L0_CONTEXT: not this Core's context; Cores do not share memory")
        return RemoteContext(npu)


def _check_name(device_name: str) -> None:
    if device_name != _NPU:
        raise OptionError(f"unknown device {device_name!r}; this runtime has only NPU")
