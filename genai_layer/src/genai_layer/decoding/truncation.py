"""Rule for the full cache of one text: tokens that are read again (NPUW_LLM_ON_FULL = TRUNCATE)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from genai_layer.prompt import Prompt

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Truncation:
    """Prompt of a text that is read again when the cache is full."""

    prompt: Prompt
    longest: int
    """Maximum tokens that are read at once; the prompt has at most as many."""
    capacity: int
    """Maximum number of stored tokens."""
    forgotten: int = 0
    """Number of the answer's tokens that are left out."""

    @property
    def left_out(self) -> str:
        """Description of the messages and of the answer's tokens that are left out."""
        answer = f"the first {self.forgotten} tokens of the answer" if self.forgotten else ""
        return " and ".join(filter(None, (self.prompt.left_out, answer)))

    def shorten(self, text: list[int]) -> list[int]:
        """Leave out turns of the prompt; return as much of the text's end as fits after it.

        At least half of the text stays.
        """
        whole, self.prompt = self.prompt, self.prompt.within(self.longest - len(text))
        if self.prompt is not whole:
            self.prompt.warn()
        ids = self.prompt.ids
        kept = text[-max(self.longest - len(ids), len(text) // 2, 1) :]
        self.forgotten += len(text) - len(kept)
        _log.warning(
            "the KV cache is full: %d tokens of the prompt and the last %d of %d tokens of the "
            "answer are read again",
            len(ids),
            len(kept),
            len(text),
        )
        return kept
