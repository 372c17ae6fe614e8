"""The real OpenVINO as a runtime; its objects satisfy the protocols as they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.files import is_folder
from genai_layer.runtime import CompiledModel, Core, LowRank


@cache
def _core() -> Any:
    """One for the process, and for good.

    The CPU plugin gives the thread that loads it a stack for signals, and frees that when its core
    dies, in whichever thread: a signal to the first one, Ctrl-C say, would then end the process.
    """
    try:
        import openvino
    except ImportError as error:
        raise PropertyError(
            "the package openvino is not installed: pip install 'genai_layer[openvino]'"
        ) from error
    return openvino.Core()


class OpenVINOCore:
    """``openvino.Core``, for a folder's IR."""

    def __init__(self) -> None:
        self._core = _core()

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> CompiledModel:
        """Compile an IR.

        Raises:
            RuntimeError: OpenVINO refuses it, or the folder has weights but no IR.
        """
        return self._core.compile_model(_ir(model), device_name, dict(config))

    def adaptable_products(self, model: str | Path, /) -> Mapping[str, tuple[int, int]]:
        """Tell what adapters can be put beside; as ``runtime.TakesAdapters``."""
        # Imported here and below: who has no adapters loads nothing of them.
        from genai_layer.adapters.openvino_lora import adaptable, widths

        found = adaptable(self._core.read_model(_ir(model)))
        return {name: widths(node) for name, node in found.items()}

    def compile_adapted(
        self,
        model: str | Path,
        device_name: str,
        config: Mapping[str, Any],
        adapters: Mapping[str, LowRank],
        mode: str,
        /,
    ) -> CompiledModel:
        """Compile an IR with adapters; as ``runtime.TakesAdapters``.

        Raises:
            RuntimeError: as ``compile_model``; or weights are quantised, and the mode is FUSE.
        """
        from genai_layer.adapters.openvino_lora import AdaptedModel, insert_adapters

        read = self._core.read_model(_ir(model))
        insert_adapters(read, adapters, mode)
        return AdaptedModel(self._core.compile_model(read, device_name, dict(config)), adapters)


def _ir(model: str | Path) -> str:
    if is_folder(Path(model)):
        raise PropertyError(
            f"{model} has no openvino_model.xml, which OpenVINO needs; export it with "
            "optimum-cli export openvino, or use device NPU"
        )
    return str(model)


def load_core() -> Core:
    """Give OpenVINO's runtime; the entry point of device CPU."""
    return OpenVINOCore()
