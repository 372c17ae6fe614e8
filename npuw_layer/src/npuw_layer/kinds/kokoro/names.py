"""Names of the two models of a split Kokoro, their inputs and their outputs."""

from __future__ import annotations

OPTION = "NPUW_KOKORO"

DURATIONS, AUDIO = SUBMODELS = ("durations", "audio")
"""The models in their order, as NPUW_SUBMODEL_DEVICE names them: A and B of the original."""

INPUT_IDS = "input_ids"

TEXT_MASK, INPUT_LENGTHS = "text_mask", "input_lengths"
"""What the first model is told of padding: boolean [1, tokens], and i64 [1]."""

EN_LEFT, ASR_LEFT = "en_left", "asr_left"
"""What it encodes tokens as, [1, channels, tokens]: how they sound, and what they say."""

EN_BLOCK, ASR_BLOCK = "en_block", "asr_block"
"""The same of the frames that the second model gets, [1, channels, block]."""
