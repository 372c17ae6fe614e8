"""The real OpenVINO as a runtime; its objects satisfy the protocols as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.runtime import CompiledModel, Core


class OpenVINOCore:
    """``openvino.Core``, for a folder's IR."""

    def __init__(self) -> None:
        try:
            import openvino
        except ImportError as error:
            raise PropertyError(
                "the package openvino is not installed: pip install 'genai_layer[openvino]'"
            ) from error
        self._core: Any = openvino.Core()

    def compile_model(
        self, model: str | Path, device_name: str, config: Mapping[str, Any], /
    ) -> CompiledModel:
        """Compile an IR.

        Raises:
            RuntimeError: OpenVINO refuses it, or the folder has weights but no IR.
        """
        if Path(model).is_dir():
            raise PropertyError(
                f"{model} has no openvino_model.xml, which OpenVINO needs; export it with "
                "optimum-cli export openvino, or use device NPU"
            )
        return self._core.compile_model(str(model), device_name, dict(config))


def load_core() -> Core:
    """Give OpenVINO's runtime; the entry point of device CPU."""
    return OpenVINOCore()
