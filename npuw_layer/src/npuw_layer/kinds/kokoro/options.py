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
    """Text to speech: a model whose audio is as long as the spoken text lasts."""

    title: ClassVar[str] = "Kokoro"
    flags: ClassVar[tuple[str, ...]] = ("kokoro",)
    follows: ClassVar[type[OptionGroup] | None] = KvOptions

    kokoro: bool = Field(False, alias="NPUW_KOKORO")
    """Split a Kokoro (input_ids [1, tokens], ref_s, speed, of static shapes) where the durations of
    tokens become frames: one model reads the text, the other makes audio of a block of frames at a
    time. Tokens behind the first 0 that is not the first token are padding, and last 0 frames. The
    models are called durations and audio in NPUW_SUBMODEL_DEVICE; the options NPUW_ONLINE_… are for
    the second, and the first is compiled whole. With NPUW_DEVICES = "NPU,CPU" or "NPU,OPENVINO_CPU"
    the NPU gets all of the second that it can, unless NPUW_ONLINE_AVOID says what it does not; the
    first goes to the other device. Unless it is set, INFERENCE_PRECISION_HINT is f32, as
    phases are added up. Such a model is not exported; CACHE_DIR keeps both."""
    kokoro_block_size: int = Field(200, alias="NPUW_KOKORO_BLOCK_SIZE", ge=1, le=MANY)
    """Frames that the audio model gets at a time."""
    kokoro_overlap_size: int = Field(20, alias="NPUW_KOKORO_OVERLAP_SIZE", ge=0, le=MANY)
    """How many of these are those of its neighbours, half of them on either side: less than
    NPUW_KOKORO_BLOCK_SIZE. They are heard, and their own audio is dropped."""

    def excluded(self) -> Mapping[str, object]:
        """Exclude sharing and exporting: both models belong to the whole model."""
        options = self.group(OptionValues)
        return {
            "NPUW_GQA": options.gqa,
            "NPUW_WEIGHTS_BANK": options.shares_weights,
            "EXPORT_BLOB": options.export_blob,
        }

    def check(self) -> None:
        """Check that a block has frames that do not overlap with neighbours."""
        if self.kokoro and self.kokoro_overlap_size >= self.kokoro_block_size:
            raise ValueError(
                f"NPUW_KOKORO_OVERLAP_SIZE: {self.kokoro_overlap_size} has to be less than "
                f"NPUW_KOKORO_BLOCK_SIZE = {self.kokoro_block_size}"
            )
