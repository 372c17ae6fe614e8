"""Compiles models, as OpenVINO's ``Core`` does."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from compiler_layer.garbage import collected_later
from npuw_layer.adapters.level_zero import Contexts, LevelZeroDevice
from npuw_layer.compiled_model import CompiledModel
from npuw_layer.errors import ModelError, OptionError, RemoteError
from npuw_layer.llm.compiled import compile_llm
from npuw_layer.options import Options, parse_options
from npuw_layer.ports import Compiler, Device
from npuw_layer.remote.context import RemoteContext
from npuw_layer.remote.properties import L0_CONTEXT
from npuw_layer.routing import route
from npuw_layer.static.compiled import compile_static
from npuw_layer.static.compiled_model import StaticCompiledModel

DEVICES = "npuw_layer.devices"
COMPILERS = "npuw_layer.compilers"


class Core:
    """Compiles models for the NPU; all static models of a Core share memory in place.

    Args:
        compiler: used instead of the one that NPUW_COMPILER names.
        device: used instead of the one that NPUW_DEVICES names.
    """

    def __init__(self, compiler: Compiler | None = None, device: Device | None = None) -> None:
        self._compiler = compiler
        self._device = device
        self._contexts = Contexts()

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
    ) -> CompiledModel | StaticCompiledModel:
        """Compile a model: a language model as NPUW does, a static one as it is.

        Args:
            model: an ``openvino_model.xml``, or a Hugging Face folder.
            device_name: "NPU".
            config: options under OpenVINO's names; see ``npuw_layer.options``.

        Raises:
            OptionError: an option is unknown or wrong.
            ModelError: the model cannot be read, or is not supported.
            NpuwError: compiling or loading failed.
        """
        _check_name(device_name)
        path = _model_path(Path(model))
        options = route(path, parse_options(config or {}))
        with collected_later():
            if options.llm:
                compiled = compile_llm(path, self._make_device(options), options)
                return CompiledModel(compiled, options)
            npu = self._npu(options)
            return StaticCompiledModel(
                compile_static(path, npu, options), options, RemoteContext(npu)
            )

    def get_default_context(self, device_name: str = "NPU", /) -> RemoteContext:
        """Give where remote tensors are made that static models of this Core bind in place.

        Raises:
            OptionError: there is no such device.
        """
        return self.create_context(device_name, {})

    def create_context(
        self, device_name: str, properties: Mapping[str, Any] | None = None, /
    ) -> RemoteContext:
        """Give a remote context of a device; all of one Core and one platform are the same memory.

        Args:
            device_name: "NPU".
            properties: NPU_PLATFORM, if it is not the default; L0_CONTEXT, which can only be this
                Core's own.

        Raises:
            OptionError: there is no such device, platform or property.
            RemoteError: L0_CONTEXT is another Core's.
        """
        _check_name(device_name)
        given = dict(properties or {})
        wanted = given.pop(L0_CONTEXT, None)
        npu = self._npu(parse_options(given))
        if wanted is not None and wanted is not npu.context:
            raise RemoteError(
                "L0_CONTEXT is not this Core's context; memory is shared within one Core alone"
            )
        return RemoteContext(npu)

    def _npu(self, options: Options) -> LevelZeroDevice:
        """The NPU itself, which static models run on."""
        if self._device is None:
            return LevelZeroDevice(self._make_compiler(options), options.platform, self._contexts)
        if not isinstance(self._device, LevelZeroDevice):
            raise OptionError("static models and remote tensors need the NPU, not another device")
        return self._device

    def _make_device(self, options: Options) -> Device:
        if self._device is not None:
            return self._device
        make = _plugin(DEVICES, "NPUW_DEVICES", options.devices)
        return make(self._make_compiler(options), options.platform)

    def _make_compiler(self, options: Options) -> Compiler:
        return self._compiler or _plugin(COMPILERS, "NPUW_COMPILER", options.compiler)()


def _check_name(device_name: str) -> None:
    if device_name != "NPU":
        raise OptionError(f"device {device_name!r}; this runtime has NPU alone")


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
