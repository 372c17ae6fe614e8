"""Options of text-to-speech models (Kokoro)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import MANY, OptionGroup
from npuw_layer.options.kinds import KindOptions
from npuw_layer.options.llm import KvOptions
from npuw_layer.options.model import OptionValues


class KokoroOptions(KindOptions):
    """Text to speech: a model whose length of audio depends on the text."""

    title: ClassVar[str] = "Kokoro"
    flags: ClassVar[tuple[str, ...]] = ("kokoro",)
    follows: ClassVar[type[OptionGroup] | None] = KvOptions

    kokoro: bool = Field(False, alias="NPUW_KOKORO")
    """Split a Kokoro (input_ids [1, tokens], ref_s, speed, of static shapes) where durations of
    tokens become frames: one model reads the text, the other makes the audio of one block of frames
    at a time. Tokens behind the first 0 that is not the first token are padding, and last 0 frames.
    The models are named durations and audio in NPUW_SUBMODEL_DEVICE; the options NPUW_ONLINE_…
    apply to audio only. With NPUW_DEVICES = "NPU,CPU" or "NPU,OPENVINO_CPU" the NPU runs all
    supported ops of audio, unless NPUW_ONLINE_AVOID excludes them, and the other device runs
    durations. The default of INFERENCE_PRECISION_HINT is f32, as phases are accumulated. Export is
    not supported; CACHE_DIR keeps both models."""
    kokoro_block_size: int = Field(200, alias="NPUW_KOKORO_BLOCK_SIZE", ge=1, le=MANY)
    """Frames that the audio model reads in one run."""
    kokoro_overlap_size: int = Field(20, alias="NPUW_KOKORO_OVERLAP_SIZE", ge=0, le=MANY)
    """Context frames of a block, half of them on either side: frames of the neighbouring blocks,
    whose audio is dropped. Less than NPUW_KOKORO_BLOCK_SIZE."""

    def excluded(self) -> Mapping[str, object]:
        """Exclude sharing and exporting: both work on complete models."""
        options = self.group(OptionValues)
        return {
            "NPUW_GQA": options.gqa,
            "NPUW_WEIGHTS_BANK": options.shares_weights,
            "EXPORT_BLOB": options.export_blob,
        }

    def check(self) -> None:
        """Check that a block has frames besides its context."""
        if self.kokoro and self.kokoro_overlap_size >= self.kokoro_block_size:
            raise ValueError(
                f"NPUW_KOKORO_OVERLAP_SIZE = {self.kokoro_overlap_size}: set it to less than "
                f"NPUW_KOKORO_BLOCK_SIZE = {self.kokoro_block_size}"
            )
