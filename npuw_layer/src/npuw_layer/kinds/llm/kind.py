"""The record of language models, and the base of kinds that are split like them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuw_layer.api.kind import Kind
from npuw_layer.errors import OptionError
from npuw_layer.llm.language_kind import LanguageKind

if TYPE_CHECKING:
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.devices.core_devices import CoreDevices
    from npuw_layer.kinds.llm.compiled_model import CompiledModel, SplitModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.options import Options
    from npuw_layer.storage.model_blob.imported import BlobBytes
    from npuw_layer.traits.lora.adaptation import Adaptation


class SplitKind(Kind, LanguageKind):
    """A kind whose models are split by ``npuw_layer.llm`` (NPUW_LLM)."""

    def requested(self, options: Options) -> str:
        """Return the option that requests this kind; empty if none is set."""
        return Kind.requested(self, options)

    def settle(self, path: Path, options: Options) -> Options:
        """Choose NPUW, and splitting."""
        del path
        if options.use_npuw is False:
            raise OptionError(
                "NPUW_LLM = YES needs NPU_USE_NPUW = YES: it is NPUW that splits LLMs"
            )
        return options.model_copy(update={"use_npuw": True, "llm": True})

    def device(self, devices: CoreDevices, options: Options) -> Device:
        """Return what runs the stages that options ask for."""
        from npuw_layer.llm.plan.stages import plan

        return devices.of_stages(options, [stage.name for stage in plan(options).stages])

    def build(
        self, devices: CoreDevices, device: Device, path: Path, options: Options
    ) -> SplitModel:
        """Compile the stages of a model."""
        if options.weights_offload != "NO":
            # Imported here: models that do not offload load nothing of it.
            from npuw_layer.execution.offload.device import offloading

            device = offloading(device, path if path.is_dir() else path.parent, options)
        return self.ready(self.stages(device, path, options))

    def stages(self, device: Device, path: Path, options: Options) -> CompiledLLM:
        """Compile the stages of a model for a device."""
        from npuw_layer.llm.compiled import compile_llm

        return compile_llm(path, device, options)

    @abstractmethod
    def ready(self, compiled: CompiledLLM) -> SplitModel:
        """Return compiled stages as a model of this kind."""


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
        """Return NPUW_LLM; if it is not set, whether a model runs only if it is split."""
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
        """Return language models with adapters."""
        from npuw_layer.traits.lora.adaptation import Adaptation, Mode

        return LLMKind(Adaptation(adapters, Mode(mode)))

    def loads(self, blob: bytes) -> bool:
        """Return whether a file has the stages of a split model, of whichever kind."""
        from npuw_layer.storage.container import MODEL

        return blob == MODEL

    def load(self, devices: CoreDevices, blob: BlobBytes) -> SplitModel:
        """Load a split model, whose options tell its kind."""
        from npuw_layer.kinds.registry import kinds
        from npuw_layer.llm.imported import import_llm

        compiled = import_llm(blob, partial(self.device, devices))
        split = [kind for kind in kinds() if isinstance(kind, SplitKind)]
        kind = next((kind for kind in split if kind.requested(compiled.options)), self)
        return kind.ready(compiled)


def _is_dynamic(path: Path) -> bool:
    """Return whether an input has an open dimension; a Hugging Face folder always has.

    An open batch does not count: the NPU runs item by item (``static.batch``). The file is scanned
    without reading the model; whether it is a model shows later.
    """
    from npuw_layer.storage.ir_ends import ir_inputs

    if path.suffix != ".xml":
        return True
    open_dims = (dim for _, dims in ir_inputs(path) for dim in dims[1:] or dims)
    return any(mark in dim for dim in open_dims for mark in ("?", "-1", ".."))


KIND = LLMKind()
