"""Both models of a Kokoro, compiled or taken from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device, ImportsMemory
from npuw_layer.errors import ModelError
from npuw_layer.kinds.kokoro.names import AUDIO, DURATIONS, EN_BLOCK
from npuw_layer.kinds.kokoro.options import KokoroOptions
from npuw_layer.kinds.static.compiled import CompiledStatic, compile_static
from npuw_layer.kinds.static.parts import CompiledParts
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.kinds.static.source import GraphSource
from npuw_layer.options import Options

if TYPE_CHECKING:
    from compiler_layer.model import Model


@dataclass(frozen=True, slots=True)
class CompiledKokoro(CompiledParts):
    """Both models of a Kokoro; requests do not modify them.

    Attributes:
        durations: the model that reads a text (``split.durations_model``).
        audio: the model that makes audio of a block of frames (``split.audio_model``).
    """

    durations: CompiledStatic
    audio: CompiledStatic

    @property
    def parts(self) -> Sequence[CompiledStatic]:
        """Both models, in order."""
        return self.durations, self.audio

    @property
    def block(self) -> int:
        """Number of frames that the audio model takes."""
        (port,) = (port for port in self.audio.inputs if port.any_name == EN_BLOCK)
        return port.shape[-1]

    @property
    def lasting(self) -> StaticPort:
        """The output with durations, [tokens]."""
        return self.durations.outputs[0]

    @property
    def sound(self) -> StaticPort:
        """The output with samples, [..., samples of a block]."""
        return self.audio.outputs[0]


def compile_kokoro(
    path: Path, device: Device, npu: ImportsMemory, options: Options
) -> CompiledKokoro:
    """Compile both models, or load them from the cache.

    Args:
        path: an IR's ``.xml``.
        device: the device that runs the models.
        npu: the NPU whose memory holds their tensors.
        options: NPUW_KOKORO_BLOCK_SIZE, and options of static models.

    Raises:
        ModelError: the model is not a Kokoro, has open shapes, or is not supported.
        DeviceError: a device rejects a model.
    """
    if path.suffix != ".xml":
        raise ModelError(f"NPUW_KOKORO = YES: {path} is not an IR; export the model first")
    whole = cache(GraphSource.whole(path).graph)
    size = options.group(KokoroOptions).kokoro_block_size

    def compiled(submodel: str) -> CompiledStatic:
        frames = {"NPUW_KOKORO_BLOCK_SIZE": str(size)} if submodel == AUDIO else {}
        depends = {"part of a Kokoro": submodel, **frames}
        source = GraphSource(path, partial(graph, submodel), submodel, depends)
        return compile_static(source, device, npu, options)

    def graph(submodel: str) -> Model:
        from npuw_layer.kinds.kokoro.split import audio_model, durations_model

        return audio_model(whole(), size) if submodel == AUDIO else durations_model(whole())

    return CompiledKokoro(compiled(DURATIONS), compiled(AUDIO))
