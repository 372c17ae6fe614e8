"""Prompt lookup: the last tokens are searched in the earlier ones, and what follows is a candidate.

Source: docs/reference/genai.md#prompt-lookup.
"""

from __future__ import annotations

from collections.abc import Sequence

from genai_layer.decoding.candidate_count import CandidateCount


class PromptLookup:
    """Drafter from the prompt and the text so far.

    Args:
        longest: maximum number of last tokens that are searched.
        count: number of candidates.
    """

    def __init__(self, longest: int, count: CandidateCount) -> None:
        self._longest = longest
        self.count = count

    def begin(self) -> None:
        """Do nothing: all tokens are given each time."""

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        """Return the tokens after the first place of the longest run that ends the text."""
        begin = following(tokens, self._longest)
        return list(tokens[begin : begin + min(self.count.value, most)])

    def finish(self) -> None:
        """Do nothing: there are no inferences."""


def following(tokens: Sequence[int], longest: int) -> int:
    """Return the place after the first earlier occurrence of the last tokens.

    Args:
        tokens: the text.
        longest: maximum number of last tokens; half of the text if it is shorter.

    Returns:
        The place; the length of the text if even the last token occurs only there.
    """
    text, total = list(tokens), len(tokens)
    if longest >= total:
        longest = total // 2
    for size in range(longest, 0, -1):
        run, begin = text[total - size :], -1
        while run[0] in text[begin + 1 : total - size]:
            begin = text.index(run[0], begin + 1)
            if text[begin : begin + size] == run:
                return begin + size
    return total
