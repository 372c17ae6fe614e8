"""Compiles models, as OpenVINO's ``Core`` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler_layer.garbage import collected_later
from npuw_layer.compiled_model import CompiledModel
from npuw_layer.devices.make import make_device
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.llm.compiled import compile_llm
from npuw_layer.llm.stages import plan, plan_stages
from npuw_layer.options import Options, parse_options
from npuw_layer.ports import Compiler, Device


class Core:
    """Compiles language models for the NPU.

    Args:
        compiler: used instead of the one that NPUW_COMPILER names.
        device: used instead of those that NPUW_DEVICES names.
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
            config: options under OpenVINO's names; see ``npuw_layer.options``.

        Raises:
            OptionError: an option is unknown or wrong.
            ModelError: the model cannot be read, or is not supported.
            NpuwError: compiling or loading failed.
        """
        if device_name != "NPU":
            raise OptionError(f"device {device_name!r}; this runtime has NPU alone")
        options = parse_options(config or {})
        path = _model_path(Path(model))
        with collected_later():
            compiled = compile_llm(path, self._make_device(options), options)
        return CompiledModel(compiled, options)

    def _make_device(self, options: Options) -> Device:
        if self._device is not None:
            return self._device
        submodels = [stage.name for stage in plan_stages(*plan(options))]
        return make_device(options, submodels, self._compiler)


def _model_path(path: Path) -> Path:
    """An IR of a folder is preferred to its weights."""
    if not path.exists():
        raise ModelError(f"{path}: no such file or folder")
    ir = path / "openvino_model.xml"
    return ir if path.is_dir() and ir.is_file() else path
