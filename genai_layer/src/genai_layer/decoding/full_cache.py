"""Decoding of one text beyond the capacity of the runtime's cache (NPUW_LLM_ON_FULL).

With TRUNCATE, a full cache is read again: whole turns of the prompt are left out, and then the
beginning of the text. With SLIDE, the runtime drops rows itself.
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


def _in_parts(
    step: Read, tokens: list[int], stored: int, whole: int
) -> Generator[Read, Logits, Logits]:
    """Read tokens as any runtime takes them: the first ones at once, the others one by one."""
    parts = [tokens[:whole], *([token] for token in tokens[whole:])]
    for part in parts[:-1]:
        yield Read([part], stored)
        stored += len(part)
    return (yield replace(step, rows=[parts[-1]], past=stored))
