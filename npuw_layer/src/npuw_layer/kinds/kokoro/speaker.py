"""Speaker that converts a text to its audio: both models, and the host's work between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npuw_layer.api.results import Results
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.kinds.kokoro.alignment import count_real, gather_frames, mask_of, tokens_of_frames
from npuw_layer.kinds.kokoro.blocks import plan_blocks
from npuw_layer.kinds.kokoro.compiled import CompiledKokoro
from npuw_layer.kinds.kokoro.names import (
    ASR_BLOCK,
    ASR_LEFT,
    EN_BLOCK,
    EN_LEFT,
    INPUT_IDS,
    INPUT_LENGTHS,
    TEXT_MASK,
)
from npuw_layer.kinds.kokoro.options import KokoroOptions
from npuw_layer.kinds.static.infer_request import StaticInferRequest
from npuw_layer.remote.tensor import RemoteTensor, values_of

Tensors = Mapping[str, Tensor | RemoteTensor]
"""Inputs of the whole model by name."""


class Speaker:
    """Runner of both models, for one text at a time.

    Args:
        compiled: both models.
        check_wanted: raises if the inference is cancelled.
    """

    def __init__(self, compiled: CompiledKokoro, check_wanted: Callable[[], None]) -> None:
        self._compiled = compiled
        self._check_wanted = check_wanted
        self._durations = StaticInferRequest(compiled.durations)
        self._audio = StaticInferRequest(compiled.audio)
        self.runs = ""
        """Readable report of the last run."""

    def speak(self, given: Tensors) -> tuple[Array, Array]:
        """Convert a text to speech.

        Args:
            given: all inputs.

        Returns:
            The audio, [..., samples], and the durations of all tokens, 0 for padding.

        Raises:
            ModelError: the text has no frame, or too many.
            InferenceCancelled: the inference was cancelled.
            DeviceError: a device failed.
        """
        read = self._read(given)
        durations = read[self._compiled.lasting.any_name]
        audio = self._sound(given, tokens_of_frames(durations), read[EN_LEFT], read[ASR_LEFT])
        return audio, durations

    def _read(self, given: Tensors) -> Results:
        """Run the first model, with padding masked out."""
        ids = values_of(given[INPUT_IDS])
        real = count_real(ids)
        lengths = {TEXT_MASK: mask_of(real, ids.shape[1]), INPUT_LENGTHS: np.array([real])}
        read = self._durations.infer(_inputs(self._durations, given, lengths))
        read[self._compiled.lasting.any_name].reshape(-1)[real:] = 0
        return read

    def _sound(self, given: Tensors, tokens: Array, en: Array, asr: Array) -> Array:
        """Run the second model block by block, and join the kept samples."""
        size = self._compiled.block
        blocks = plan_blocks(
            tokens.size, size, self._compiled.options.group(KokoroOptions).kokoro_overlap_size
        )
        parts: list[Array] = []
        for block in blocks:
            self._check_wanted()
            heard = tokens[block.begin : block.end]
            frames = {
                EN_BLOCK: gather_frames(en, heard, size),
                ASR_BLOCK: gather_frames(asr, heard, size),
            }
            results = self._audio.infer(_inputs(self._audio, given, frames), share_outputs=True)
            made = results[self._compiled.sound.any_name]
            parts.append(made[..., block.samples(made.shape[-1], size)].copy())
        self.runs = f"{tokens.size} frames in {len(blocks)} blocks of {size}"
        return np.concatenate(parts, -1)


def _inputs(request: StaticInferRequest, given: Tensors, own: Mapping[str, Array]) -> Tensors:
    """Return the inputs of one model, from the caller's and the host's tensors."""
    names = {port.any_name for port in request.model_inputs}
    made = {name: Tensor(values) for name, values in own.items()}
    return {name: tensor for name, tensor in {**given, **made}.items() if name in names}
