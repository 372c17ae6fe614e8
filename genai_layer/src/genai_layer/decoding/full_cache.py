"""Decoding of one text beyond the capacity of the runtime's cache (NPUW_LLM_ON_FULL).

With TRUNCATE, a full cache is read again: whole turns of the prompt are left out, and then the
beginning of the text. With SLIDE, the runtime drops rows itself; a prompt that begins with the
tokens that the cache has read continues there.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from genai_layer.decoding.reads import Decoding, Read
from genai_layer.decoding.truncation import Truncation
from genai_layer.sampling.processors import Logits


def truncated(decoding: Decoding, truncation: Truncation) -> Decoding:
    """Run a method of one text; when the cache is full, read shorter tokens again."""
    stored, text = 0, list[int]()
    try:
        step = next(decoding)
        while True:
            (new,) = step.rows
            tokens = [*new]
            if step.past:
                text += tokens
            if stored + len(tokens) > truncation.capacity:
                text, stored = truncation.shorten(text), 0
                tokens = [*truncation.prompt.ids, *text]
            logits = yield from _in_parts(step, tokens, stored, truncation.longest)
            stored += len(tokens)
            step = decoding.send(logits)
    except StopIteration as end:
        return end.value


def continued(decoding: Decoding, stored: int) -> Decoding:
    """Run a method of one text whose prompt begins with the tokens that the cache has read."""
    try:
        step = next(decoding)
        (prompt,) = step.rows
        logits = yield from _in_parts(step, [*prompt[stored:]], stored, 1)
        while True:
            step = decoding.send(logits)
            logits = yield step
    except StopIteration as end:
        return end.value


def _in_parts(
    step: Read, tokens: list[int], stored: int, whole: int
) -> Generator[Read, Logits, Logits]:
    """Read tokens as any runtime takes them: the first ones at once, the others one by one."""
    parts = [tokens[:whole], *([token] for token in tokens[whole:])]
    for part in parts[:-1]:
        yield Read([part], stored)
        stored += len(part)
    return (yield replace(step, rows=[parts[-1]], past=stored))


class SlidingHistory:
    """Tokens that a sliding cache has read.

    Args:
        least: minimum number of tokens to continue after; a shorter prompt is read at once faster.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._tokens: list[int] = []

    def take(self, prompt: list[int]) -> int:
        """Return the number of tokens with which the prompt begins and after which it continues.

        The tokens are forgotten until ``note``, as the next generation may fail.
        """
        tokens, self._tokens = self._tokens, []
        count = len(tokens)
        continues = self._least <= count < len(prompt) and prompt[:count] == tokens
        return count if continues else 0

    def note(self, prompt: list[int], text: list[int]) -> None:
        """Note a complete text; its last token is generated, but never read."""
        self._tokens = [*prompt, *text[:-1]] if text else []
