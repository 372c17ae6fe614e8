"""The record of language models, and the base of kinds that are split like them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuw_layer.api.kind import NO_ADAPTERS, Kind, export_target
from npuw_layer.errors import OptionError

if TYPE_CHECKING:
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.devices.core_devices import CoreDevices
    from npuw_layer.kinds.llm.compiled_model import CompiledModel, SplitModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.options import Options
    from npuw_layer.storage.model_blob.imported import BlobBytes
    from npuw_layer.traits.lora.adaptation import Adaptation


class SplitKind(Kind):
    """A kind whose models are split by ``npuw_layer.llm`` (NPUW_LLM)."""

    def settle(self, path: Path, options: Options) -> Options:
        """Choose NPUW, and splitting; errors as ``Kind.settle``."""
        del path
        if options.use_npuw is False:
            raise OptionError(
                "NPUW_LLM = YES needs NPU_USE_NPUW = YES: it is NPUW that splits LLMs"
            )
        return options.model_copy(update={"use_npuw": True, "llm": True})

    def compile(
        self,
        devices: CoreDevices,
        path: Path,
        options: Options,
        adaptation: Adaptation | None = None,
    ) -> SplitModel:
        """Compile a model, with LoRA adapters if there are any."""
        device = _device(devices, options)
        if options.weights_offload != "NO":
            # Imported here: models that do not offload load nothing of it.
            from npuw_layer.execution.offload.device import offloading

            device = offloading(device, path if path.is_dir() else path.parent, options)
        target = export_target(device, options)
        model = self.ready(self.programs(path, device, options, adaptation))
        if target is not None:
            model.export_model(target)
        return model

    def programs(
        self, path: Path, device: Device, options: Options, adaptation: Adaptation | None
    ) -> CompiledLLM:
        """Compile the stages of a model; as ``llm.compiled.compile_llm``."""
        from npuw_layer.llm.compiled import compile_llm

        return compile_llm(path, device, options, adaptation)

    @abstractmethod
    def ready(self, compiled: CompiledLLM) -> SplitModel:
        """Return compiled stages as a model of this kind."""


class LanguageKind(SplitKind):
    """Language models, which generate text token by token."""

    name = "llm"
    rank = 8

    def recognises(self, path: Path, options: Options) -> bool:
        """Return NPUW_LLM; if it is not set, whether the model can run only if it is split."""
        if options.llm is not None:
            return options.llm
        return options.use_npuw is not False and _is_dynamic(path)

    def ready(self, compiled: CompiledLLM) -> CompiledModel:
        """Return compiled stages as a language model."""
        from npuw_layer.kinds.llm.compiled_model import CompiledModel

        return CompiledModel(compiled)

    def adapt(
        self,
        devices: CoreDevices,
        path: Path,
        options: Options,
        adapters: Mapping[str, Any],
        mode: str,
    ) -> SplitModel:
        """Compile a language model with LoRA adapters; as ``Core.compile_adapted``."""
        if options.blob_path and not options.export_blob:
            raise OptionError(NO_ADAPTERS)
        from npuw_layer.traits.lora.adaptation import Adaptation, Mode, adapted_options

        adaptation = Adaptation(adapters, Mode(mode))
        return self.compile(devices, path, adapted_options(options, adaptation), adaptation)

    def loads(self, blob: bytes) -> bool:
        """Return whether a file has the stages of a split model, of whichever kind."""
        from npuw_layer.storage.container import MODEL

        return blob == MODEL

    def load(self, devices: CoreDevices, blob: BlobBytes) -> SplitModel:
        """Load a split model; its options say of which kind it is."""
        from npuw_layer.kinds.registry import kinds
        from npuw_layer.llm.imported import import_llm

        compiled = import_llm(blob, partial(_device, devices))
        split = (kind for kind in kinds() if isinstance(kind, SplitKind))
        kind = next((each for each in split if each.requested(compiled.options)), self)
        return kind.ready(compiled)


def _device(devices: CoreDevices, options: Options) -> Device:
    """Return what runs the stages that options ask for."""
    from npuw_layer.llm.plan.stages import plan

    return devices.of_stages(options, [stage.name for stage in plan(options).stages])


def _is_dynamic(path: Path) -> bool:
    """Return whether an input has an open dimension; a Hugging Face folder always has.

    An open batch does not count: the NPU runs item by item (``static.batch``). The file is scanned
    without reading the model; whether it is a model shows later.
    """
    from npuw_layer.storage.ir_inputs import ir_inputs

    if path.suffix != ".xml":
        return True
    return any(
        mark in dim
        for _, dims in ir_inputs(path)
        for dim in dims[1:] or dims
        for mark in ("?", "-1", "..")
    )


KIND = LanguageKind()
