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

Source: docs/reference/npuw.md#whisper; NPUW's LLM compiled model sets the same options and lengths.
"""

_MAX_PROMPT = 4
"""Tokens of a prompt: begin, language, task, and the choice of timestamps."""

_KV_SIZE = 448
"""Number of positions of any Whisper model."""


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
        """Return the lengths of a decoder: all positions, of which the prompt takes a few.

        Raises:
            OptionError: the prompt would leave no position for an answer.
        """
        from npuw_layer.llm.plan.lengths import Lengths

        longest, prompt = _KV_SIZE - 1, _MAX_PROMPT
        if "max_prompt_len" in options.model_fields_set:
            prompt = options.max_prompt_len
        if prompt > longest:
            raise OptionError(
                f"NPUW_LLM_MAX_PROMPT_LEN = {prompt}: a Whisper decoder has {_KV_SIZE} positions; "
                f"set the length to at most {longest}"
            )
        if options.group(WhisperOptions).whisper_decompose_sdpa:
            prompt = longest
        return Lengths(prompt, _KV_SIZE - prompt, None)

    def graph(self, model: Model, stage: Stage, options: Options, check: bool) -> Model:
        """Return the static graph of a stage; see ``decoder_graph``."""
        from npuw_layer.kinds.whisper.decoder import decoder_graph

        return decoder_graph(model, stage, options, check)

    def ready(self, compiled: CompiledLLM) -> WhisperModel:
        """Return compiled stages as a Whisper decoder."""
        from npuw_layer.kinds.whisper.compiled_model import WhisperModel

        return WhisperModel(compiled)


KIND = WhisperKind()
