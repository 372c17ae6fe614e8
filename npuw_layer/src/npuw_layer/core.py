"""Compiles models, as OpenVINO's ``Core`` does."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from compiler_layer.garbage import collected_later
from npuw_layer.blob.source import Source
from npuw_layer.compiled_model import CompiledModel
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.llm.compiled import compile_llm
from npuw_layer.llm.exported import DEFAULT_PATH, check_device, check_target
from npuw_layer.options import Options, parse_options
from npuw_layer.ports import Compiler, Device

DEVICES = "npuw_layer.devices"
COMPILERS = "npuw_layer.compilers"


class Core:
    """Compiles language models for the NPU.

    Args:
        compiler: used instead of the one that NPUW_COMPILER names.
        device: used instead of the one that NPUW_DEVICES names.
    """

    def __init__(self, compiler: Compiler | None = None, device: Device | None = None) -> None:
        self._compiler = compiler
        self._device = device

    @property
    def available_devices(self) -> list[str]:
        """The names that ``compile_model`` takes."""
        return ["NPU"]

    def compile_model(
        self,
        model: str | Path,
        device_name: str = "NPU",
        config: Mapping[str, Any] | None = None,
        /,
    ) -> CompiledModel:
        """Compile a language model.

        Args:
            model: an ``openvino_model.xml``, or a Hugging Face folder.
            device_name: "NPU".
            config: options under OpenVINO's names; see ``npuw_layer.options``. With BLOB_PATH
                nothing is compiled, unless EXPORT_BLOB says to write that file.

        Raises:
            OptionError: an option is unknown or wrong.
            ModelError: the model cannot be read, or is not supported.
            BlobError: the file of BLOB_PATH is damaged.
            NpuwError: compiling or loading failed.
        """
        _check_device_name(device_name)
        options = parse_options(config or {})
        path = _model_path(Path(model))
        if options.blob_path and not options.export_blob:
            return self._import(options.blob_path, config or {}, path)
        target = Path(options.blob_path or DEFAULT_PATH) if options.export_blob else None
        device = self._make_device(options)
        if target is not None:
            check_target(target)
            check_device(device, options)
        with collected_later():
            compiled = CompiledModel(compile_llm(path, device, options), options)
        if target is not None:
            compiled.export_model(target)
        return compiled

    def import_model(
        self,
        model: Source,
        device_name: str = "NPU",
        config: Mapping[str, Any] | None = None,
        /,
    ) -> CompiledModel:
        """Load a model that ``CompiledModel.export_model`` wrote.

        Args:
            model: the path of a file, which is mapped; a stream; or bytes.
            device_name: "NPU".
            config: WEIGHTS_PATH or MODEL_PTR for a blob without weights, CACHE_DIR to remember
                what was verified; others must be as they were when the model was compiled.

        Raises:
            BlobError: it is damaged; or, as BlobVersionError, made by other versions.
            OptionError: an option is wrong or contradicts the blob, or the weights are nowhere.
            ModelError: the weights are not those of the blob.
        """
        _check_device_name(device_name)
        return self._import(model, config or {}, None)

    def _import(
        self, source: Source, config: Mapping[str, Any], model: Path | None
    ) -> CompiledModel:
        # Imported here: few starts need it.
        from npuw_layer.llm.imported import import_llm

        with collected_later():
            return CompiledModel(*import_llm(source, config, self._make_device, model))

    def _make_device(self, options: Options) -> Device:
        if self._device is not None:
            return self._device
        compiler = self._compiler or _plugin(COMPILERS, "NPUW_COMPILER", options.compiler)()
        return _plugin(DEVICES, "NPUW_DEVICES", options.devices)(compiler, options.platform)


def _check_device_name(name: str) -> None:
    if name != "NPU":
        raise OptionError(f"device {name!r}; this runtime has NPU alone")


def _model_path(path: Path) -> Path:
    """An IR of a folder is preferred to its weights."""
    if not path.exists():
        raise ModelError(f"{path}: no such file or folder")
    ir = path / "openvino_model.xml"
    return ir if path.is_dir() and ir.is_file() else path


def _plugin(group: str, option: str, name: str) -> Any:
    found = {point.name: point for point in entry_points(group=group)}
    if name not in found:
        raise OptionError(f"{option} = {name!r}; installed are {', '.join(sorted(found))}")
    return found[name].load()
