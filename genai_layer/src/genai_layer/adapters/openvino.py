"""The real OpenVINO as a runtime: its objects satisfy the protocols once rewinding is added."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from genai_layer.abilities import LowRank
from genai_layer.errors import PropertyError
from genai_layer.files import is_folder
from genai_layer.runtime import AnyModel, CompiledModel, Core
from genai_layer.tensor import HasData


@cache
def _core() -> Any:
    """Return the only core of the process; it is never destroyed.

    The CPU plugin installs a signal stack in the thread that loads it, and frees the stack with its
    core, in any thread; a signal to the first thread (Ctrl-C) would then end the process.
    """
    try:
        import openvino
    except ImportError as error:
        raise PropertyError(
            "the package openvino is not installed; pip install 'genai_layer[openvino]'"
        ) from error
    return openvino.Core()


class OpenVINOCore:
    """``openvino.Core`` that compiles the IR of a model folder, or one in memory."""

    def __init__(self) -> None:
        self._core = _core()

    def read_model(self, model: str, weights: HasData, /) -> Any:
        """Read an IR in memory.

        Raises:
            RuntimeError: OpenVINO rejects the IR.
        """
        import openvino

        given: Any = weights
        held = given if isinstance(given, openvino.Tensor) else openvino.Tensor(weights.data)
        return self._core.read_model(model, held)

    def compile_model(
        self, model: AnyModel, device_name: str, config: Mapping[str, Any], /
    ) -> CompiledModel:
        """Compile an IR; NPUW_WHISPER_DECOMPOSE_SDPA adds outputs as NPUW does.

        Raises:
            RuntimeError: OpenVINO rejects the IR, or the folder has weights but no IR.
        """
        from genai_layer.adapters.openvino_rewind import RewindingModel, remembers

        given = dict(config)
        if given.pop("NPUW_WHISPER_DECOMPOSE_SDPA", "NO") == "NO":
            compiled = self._core.compile_model(_ir(model), device_name, given)
            if not remembers(compiled):
                return compiled
            return RewindingModel(compiled, lambda: self._read(model))
        from genai_layer.adapters.openvino_scores import add_scores

        read = self._read(model)
        add_scores(read)
        return self._core.compile_model(read, device_name, given)

    def adaptable_matmuls(self, model: AnyModel, /) -> Mapping[str, tuple[int, int]]:
        """Return the matmuls that can be adapted; see ``abilities.SupportsAdapters``."""
        # Imported here and below: a pipeline without adapters does not load them.
        from genai_layer.adapters.openvino_lora import adaptable, widths

        found = adaptable(self._read(model))
        return {name: widths(node) for name, node in found.items()}

    def compile_adapted(
        self,
        model: AnyModel,
        device_name: str,
        config: Mapping[str, Any],
        adapters: Mapping[str, LowRank],
        mode: str,
        /,
    ) -> CompiledModel:
        """Compile an IR with adapters; see ``abilities.SupportsAdapters``.

        Raises:
            RuntimeError: see ``compile_model``; or weights are quantised, and the mode is FUSE.
        """
        from genai_layer.adapters.openvino_lora import AdaptedModel, insert_adapters

        read = self._read(model)
        insert_adapters(read, adapters, mode)
        compiled = self._core.compile_model(read, device_name, dict(config))
        return AdaptedModel(compiled, lambda: read, adapters)

    def _read(self, model: AnyModel) -> Any:
        """Return a model that may be changed."""
        return self._core.read_model(_ir(model)) if _is_path(model) else model.clone()


def _is_path(model: AnyModel) -> bool:
    return isinstance(model, str | os.PathLike)


def _ir(model: AnyModel) -> Any:
    """Return the IR of a folder, or the model that was read."""
    if not _is_path(model):
        return model
    if is_folder(Path(model)):
        raise PropertyError(
            f"{model}: no openvino_model.xml, which OpenVINO needs; export the model with "
            "optimum-cli export openvino, or use device NPU"
        )
    return str(model)


def load_core() -> Core:
    """Return OpenVINO's runtime; the entry point of device CPU."""
    return OpenVINOCore()
