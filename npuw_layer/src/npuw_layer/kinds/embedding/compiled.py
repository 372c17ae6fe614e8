"""Compiles a model that reads texts."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device
from npuw_layer.errors import NotCausal, OptionError
from npuw_layer.llm.compiled import CompiledLLM, compile_llm
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)

_WHOLE = {"prefill_hint": "STATIC", "shared_head": False}
"""What the options of a model are that is read whole."""


def compile_text(path: Path, device: Device, options: Options) -> CompiledLLM:
    """Compile, or load from the cache, what reading texts needs.

    Args:
        path: an IR's ``.xml`` or a Hugging Face folder.
        device: where it will run.
        options: lengths, chunks, precision, cache. What cannot be read in chunks is read whole:
            then NPUW_LLM_PREFILL_HINT is STATIC, and NPUW_LLM_SHARED_HEAD is NO.

    Raises:
        ModelError: the model cannot be read, or reads no text.
        OptionError: K and V are to lie in blocks, and it is read whole.
        RuntimeError: the compiler or the device refuses it.
    """
    try:
        return compile_llm(path, device, options, make_graph=_graph)
    except NotCausal as error:
        if options.enable_block_based_kv_cache:
            raise OptionError(
                "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE: leave it out, as a block is as long as a "
                f"chunk, and the model can only be read whole: {error}"
            ) from error
        _log.info("%s; texts are read whole", error)
    return compile_llm(path, device, options.model_copy(update=_WHOLE), make_graph=_graph)


def _graph(model: Model, stage: Stage, options: Options, check: bool) -> Model:
    """Make a graph with ``text_graph``; a warm start imports no graphs."""
    from npuw_layer.kinds.embedding.whole import text_graph

    return text_graph(model, stage, options, check)
