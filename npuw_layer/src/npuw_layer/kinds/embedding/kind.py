"""The record of models that read texts and generate nothing, which are split like language models.

The prefill models of a language model read a text in chunks; one static model reads it whole.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.errors import NotCausal, OptionError
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.llm.kind import SplitKind

if TYPE_CHECKING:
    from npuw_layer.backends.protocols import Device
    from npuw_layer.kinds.embedding.compiled_model import TextCompiledModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.options import Options

_log = logging.getLogger(__name__)

_WHOLE = {"prefill_hint": "STATIC", "shared_head": False}
"""Fields of options that a model has if it can only be read whole."""


class TextKind(SplitKind):
    """Models that embed or rank texts (NPUW_TEXT_EMBED, NPUW_TEXT_RERANK)."""

    name = "embedding"
    options = TextOptions

    def settle(self, path: Path, options: Options) -> Options:
        """Choose splitting."""
        if options.llm is False or (options.use_npuw is False and not options.llm):
            raise OptionError(
                "NPUW_TEXT_EMBED and NPUW_TEXT_RERANK need NPU_USE_NPUW = YES and NPUW_LLM = YES"
            )
        return super().settle(path, options)

    def stages(self, device: Device, path: Path, options: Options) -> CompiledLLM:
        """Compile a model to be read in chunks; if it is not causal, to be read whole."""
        try:
            return super().stages(device, path, options)
        except NotCausal as error:
            if options.enable_block_based_kv_cache:
                raise OptionError(
                    "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE: leave it out, as a block is as long as "
                    f"a chunk, and the model can only be read whole: {error}"
                ) from error
            _log.info("%s; texts are read whole", error)
        return super().stages(device, path, options.model_copy(update=_WHOLE))

    def ready(self, compiled: CompiledLLM) -> TextCompiledModel:
        """Return compiled stages as a model of texts."""
        from npuw_layer.kinds.embedding.compiled_model import TextCompiledModel

        return TextCompiledModel(compiled)


KIND = TextKind()
