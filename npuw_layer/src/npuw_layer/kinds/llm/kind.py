"""The record of language models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuw_layer.kinds.split import SplitKind

if TYPE_CHECKING:
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.core_devices import CoreDevices
    from npuw_layer.kinds.llm.compiled_model import CompiledModel, SplitModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.options import Options
    from npuw_layer.storage.model_blob.imported import BlobBytes
    from npuw_layer.traits.lora.adaptation import Adaptation


class LLMKind(SplitKind):
    """Language models, which generate text token by token.

    Args:
        adaptation: LoRA adapters that models are compiled with.
    """

    name = "llm"
    rank = 8

    def __init__(self, adaptation: Adaptation | None = None) -> None:
        self._adaptation = adaptation

    def recognises(self, path: Path, options: Options) -> bool:
        """Return NPUW_LLM; if not set, whether a model can run only if split."""
        if options.llm is not None:
            return options.llm
        return options.use_npuw is not False and _is_dynamic(path)

    def stages(self, device: Device, path: Path, options: Options) -> CompiledLLM:
        """Compile the stages of a model, with its adapters."""
        from npuw_layer.llm.compiled import compile_llm

        if self._adaptation is not None:
            from npuw_layer.traits.lora.adaptation import adapted_options

            options = adapted_options(options, self._adaptation)
        return compile_llm(path, device, options, self._adaptation)

    def ready(self, compiled: CompiledLLM) -> CompiledModel:
        """Return compiled stages as a language model."""
        from npuw_layer.kinds.llm.compiled_model import CompiledModel

        return CompiledModel(compiled)

    def adapted(self, adapters: Mapping[str, Any], mode: str) -> LLMKind:
        """Return a kind whose language models have adapters."""
        from npuw_layer.traits.lora.adaptation import Adaptation
        from npuw_layer.traits.lora.low_rank import Mode

        return LLMKind(Adaptation(adapters, Mode(mode)))

    def loads(self, blob: bytes) -> bool:
        """Return whether a file has the stages of a split model, of any kind."""
        from npuw_layer.storage.container import MODEL

        return blob == MODEL

    def load(self, devices: CoreDevices, blob: BlobBytes) -> SplitModel:
        """Load a split model, whose options determine its kind."""
        from npuw_layer.kinds.registry import language_kind
        from npuw_layer.llm.imported import import_llm

        compiled = import_llm(blob, partial(self.device, devices))
        return language_kind(compiled.options).ready(compiled)


def _is_dynamic(path: Path) -> bool:
    """Return whether an input has an open dimension; always True for a Hugging Face folder.

    An open batch does not count: the NPU runs item by item (``static.batch``). The file is scanned
    without reading the model, so an invalid model is found later.
    """
    from npuw_layer.storage.ir_ends import ir_inputs

    if path.suffix != ".xml":
        return True
    open_dims = (dim for _, dims in ir_inputs(path) for dim in dims[1:] or dims)
    return any(mark in dim for dim in open_dims for mark in ("?", "-1", ".."))


KIND = LLMKind()
