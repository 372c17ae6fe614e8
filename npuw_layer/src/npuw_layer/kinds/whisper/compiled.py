"""Compiles a Whisper decoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device
from npuw_layer.llm.compiled import CompiledLLM, compile_llm
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.traits.lora.adaptation import Adaptation


def compile_decoder(
    path: Path, device: Device, options: Options, adaptation: Adaptation | None = None
) -> CompiledLLM:
    """Compile a decoder, or load it from the cache; parameters and errors as ``compile_llm``."""
    return compile_llm(path, device, options, adaptation, _graph)


def _graph(model: Model, stage: Stage, options: Options, check: bool) -> Model:
    """Make a graph with ``decoder_graph``; a warm start imports no graphs."""
    from npuw_layer.kinds.whisper.decoder import decoder_graph

    return decoder_graph(model, stage, options, check)
