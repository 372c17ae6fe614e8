"""Names of the two models of a split Kokoro, their inputs and their outputs."""

from __future__ import annotations

OPTION = "NPUW_KOKORO"

DURATIONS, AUDIO = SUBMODELS = ("durations", "audio")
"""The models in order, with their names in NPUW_SUBMODEL_DEVICE: A and B in NPUW."""

INPUT_IDS = "input_ids"

TEXT_MASK, INPUT_LENGTHS = "text_mask", "input_lengths"
"""Inputs of the first model for padding: boolean [1, tokens], and i64 [1]."""

EN_LEFT, ASR_LEFT = "en_left", "asr_left"
"""Encodings of tokens, [1, channels, tokens]: prosody, and phonetic content."""

EN_BLOCK, ASR_BLOCK = "en_block", "asr_block"
"""Encodings of the frames that the second model reads, [1, channels, block]."""
