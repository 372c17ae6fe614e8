"""The record of Whisper decoders, which are split like language models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.errors import OptionError
from npuw_layer.kinds.split import SplitKind
from npuw_layer.kinds.whisper.options import WhisperOptions

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.kinds.whisper.compiled_model import WhisperModel
    from npuw_layer.llm.compiled import CompiledLLM
    from npuw_layer.llm.plan.lengths import Lengths
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options

_SETTLED = {
    "shared_head": False,
    "prefill_hint": "STATIC",
    "cache_rope": False,
    "optimize_v_tensors": False,
    "fold": False,
}
"""Option fields that a decoder has regardless of the given options: its LM head is small compared
with its cross-attention and is not cut off, and a prompt of few tokens is read whole.

Source: docs/reference/npuw.md#whisper.
"""


class WhisperKind(SplitKind):
    """Speech recognition with Whisper (NPUW_WHISPER)."""

    name = "whisper"
    options = WhisperOptions

    def settle(self, path: Path, options: Options) -> Options:
        """Choose splitting, without mechanisms that a small decoder does not need."""
        if options.llm is False:
            raise OptionError(
                "NPUW_WHISPER = YES needs NPUW_LLM = YES: the decoder is split like an LLM"
            )
        return super().settle(path, options.model_copy(update=_SETTLED))

    def lengths(self, options: Options) -> Lengths:
        """Return the lengths of prompt and cache of a decoder."""
        from npuw_layer.kinds.whisper.lengths import whisper_lengths

        return whisper_lengths(options)

    def graph(self, model: Model, stage: Stage, options: Options, check: bool) -> Model:
        """Return the static graph of a stage; see ``decoder_graph``."""
        from npuw_layer.kinds.whisper.decoder import decoder_graph

        return decoder_graph(model, stage, options, check)

    def ready(self, compiled: CompiledLLM) -> WhisperModel:
        """Return compiled stages as a Whisper decoder."""
        from npuw_layer.kinds.whisper.compiled_model import WhisperModel

        return WhisperModel(compiled)


KIND = WhisperKind()
