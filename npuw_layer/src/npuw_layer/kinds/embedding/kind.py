"""The record of models that read texts and generate nothing; they are split like language models.

Prefill models read a text in chunks, or one static model reads it whole.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.errors import NotCausal, OptionError
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.split import SplitKind

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.backends.protocols import Device, LoadedModel
    from npuw_layer.kinds.embedding.compiled_model import TextCompiledModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options

_log = logging.getLogger(__name__)

_WHOLE = {"prefill_hint": "STATIC", "shared_head": False}
"""Option fields of a model that can only be read whole."""


class TextKind(SplitKind):
    """Models that embed or rank texts (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK)."""

    name = "embedding"
    options = TextOptions

    def settle(self, path: Path, options: Options) -> Options:
        """Choose NPUW with splitting."""
        if options.llm is False or (options.use_npuw is False and not options.llm):
            raise OptionError(
                "NPUW_TEXT_EMBED and NPUW_TEXT_RERANK need NPU_USE_NPUW = YES and NPUW_LLM = YES"
            )
        return super().settle(path, options)

    def stages(self, device: Device, path: Path, options: Options) -> CompiledLLM:
        """Compile a model to be read in chunks or, if it is not causal, whole."""
        try:
            return super().stages(device, path, options)
        except NotCausal as error:
            if options.enable_block_based_kv_cache:
                raise OptionError(
                    "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE: blocks are as long as chunks, but the "
                    f"model can only be read whole ({error}); leave the option out"
                ) from error
            _log.info("%s; texts are read whole", error)
        return super().stages(device, path, options.model_copy(update=_WHOLE))

    def prepared(self, model: Model, options: Options) -> Model:
        """Return a stateful decoder if texts are read in chunks; see ``prepare_text``."""
        from npuw_layer.kinds.embedding.rebuild import prepare_text

        return prepare_text(model, options)

    def graph(self, model: Model, stage: Stage, options: Options, check: bool) -> Model:
        """Return the static graph of a stage; see ``text_graph``."""
        from npuw_layer.kinds.embedding.whole import text_graph

        return text_graph(model, stage, options, check)

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> bool:
        """Check imported programs, if they read texts whole."""
        from npuw_layer.kinds.embedding.imported_ports import check_whole_ports, keeps_nothing
        from npuw_layer.llm.plan.stages import lengths_of

        whole = lengths_of(options).chunk is None and not options.cuts_head
        if not whole or not keeps_nothing(loaded):
            return False
        check_whole_ports(stages, loaded)
        return True

    def ready(self, compiled: CompiledLLM) -> TextCompiledModel:
        """Return compiled stages as a model that reads texts."""
        from npuw_layer.kinds.embedding.compiled_model import TextCompiledModel

        return TextCompiledModel(compiled)


KIND = TextKind()
