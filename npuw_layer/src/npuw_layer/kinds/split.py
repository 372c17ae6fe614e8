"""Base of the kinds that are split like language models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.api.kind import Kind
from npuw_layer.errors import OptionError

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.backends.protocols import Device, LoadedModel
    from npuw_layer.execution.core_devices import CoreDevices
    from npuw_layer.kinds.llm.compiled_model import SplitModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.llm.plan.lengths import Lengths
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options


class SplitKind(Kind):
    """A kind of models that ``npuw_layer.llm`` splits (NPUW_LLM); satisfies ``LanguageKind``."""

    def settle(self, path: Path, options: Options) -> Options:
        """Choose NPUW with splitting."""
        del path
        if options.use_npuw is False:
            raise OptionError("NPUW_LLM = YES needs NPU_USE_NPUW = YES: NPUW splits LLMs")
        return options.model_copy(update={"use_npuw": True, "llm": True})

    def device(self, devices: CoreDevices, options: Options) -> Device:
        """Return the device that runs the stages of these options."""
        from npuw_layer.llm.plan.stages import plan

        return devices.of_stages(options, [stage.name for stage in plan(options).stages])

    def build(
        self, devices: CoreDevices, device: Device, path: Path, options: Options
    ) -> SplitModel:
        """Compile the stages of a model."""
        if options.weights_offload != "NO":
            # Imported here: models without offloading load none of its code.
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

    def lengths(self, options: Options) -> Lengths | None:
        """Return the lengths of prompts and caches; None if options decide."""
        del options
        return None

    def prepared(self, model: Model, options: Options) -> Model:
        """Return the model whose graph is split into stages: the model itself."""
        del options
        return model

    def graph(self, model: Model, stage: Stage, options: Options, check: bool) -> Model:
        """Return the static graph of a stage; see ``stage_graph``."""
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.llm.graph.pipeline import stage_graph

        return stage_graph(model, stage, options, check)

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> bool:
        """Return False: the checks of models with K and V cover imported programs."""
        del stages, loaded, options
        return False
