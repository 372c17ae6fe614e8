"""Whisper's decoder as a kind of language model: it has lengths of its own."""

from __future__ import annotations

from npuw_layer.kinds.whisper.lengths import whisper_lengths
from npuw_layer.llm.language_kinds import LanguageKind
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.options import Options


class WhisperDecoder(LanguageKind):
    """A decoder that attends to an encoder of speech."""

    def takes(self, options: Options) -> bool:
        """Return whether NPUW_WHISPER is set."""
        return bool(options.named("NPUW_WHISPER"))

    def lengths(self, options: Options) -> Lengths:
        """Return the lengths of a decoder; see ``lengths``."""
        return whisper_lengths(options)


KIND = WhisperDecoder()
