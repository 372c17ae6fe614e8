"""Reasoning in a streamed text.

Source: openvino_genai.ReasoningIncrementalParser, docs/reference/genai.md#parsers. Ours: the
joined results do not depend on the parts; they are openvino_genai's for single characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from genai_layer.chat_history import Message
from genai_layer.parsers.base import IncrementalParser
from genai_layer.parsers.reasoning_tags import ReasoningTags


class ReasoningIncrementalParser(ReasoningTags, IncrementalParser):
    """Parser of the reasoning between two tags, for "reasoning_content".

    Until the open tag is complete, all text is held, as the next part may complete the tag.
    """

    _opened = False
    _closed = False
    _held = ""

    def reset(self) -> None:
        """Prepare for another text; the status stays."""
        self._opened = self._closed = False
        self._held = ""

    def parse(
        self,
        delta_message: Message,
        delta_text: str,
        delta_tokens: Sequence[int] | None = None,
    ) -> str:
        """Append the part's reasoning to "reasoning_content"; return the part's content."""
        del delta_tokens
        if self._closed:
            return delta_text
        text, self._held = self._held + delta_text, ""
        opening = ""
        if self._expect_open_tag and not self._opened:
            begin = text.find(self._open_tag)
            if begin < 0:
                self._held = text
                return ""
            self._opened = True
            begin += len(self._open_tag)
            opening, text = text[:begin], text[begin:]
        parts = self._split_at_close_tag(text)
        if parts is None:
            certain = len(text) - _overlap(text, self._close_tag)
            reasoning, self._held = text[:certain], text[certain:]
            closing = after = ""
        else:
            self._closed = True
            (reasoning, after), closing = parts, self._close_tag
            delta_message["content"] = after
        delta_message["reasoning_content"] = reasoning
        return opening + reasoning + closing + after if self._keep else after


def _overlap(text: str, tag: str) -> int:
    """Return the length of the longest end of the text that begins the tag."""
    sizes = range(min(len(text), len(tag)), 0, -1)
    return next((size for size in sizes if text.endswith(tag[:size])), 0)


class DeepSeekR1ReasoningIncrementalParser(ReasoningIncrementalParser):
    """Parser of DeepSeek R1's reasoning, whose open tag ends the prompt."""

    def __init__(self) -> None:
        super().__init__(expect_open_tag=False)


class Phi4ReasoningIncrementalParser(ReasoningIncrementalParser):
    """Parser of Phi-4's reasoning, which begins with the open tag."""

    def __init__(self) -> None:
        super().__init__(expect_open_tag=True)
