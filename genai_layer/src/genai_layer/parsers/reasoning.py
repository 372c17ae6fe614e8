"""Reasoning in a complete text.

Source: openvino_genai.ReasoningParser, docs/reference/genai.md#parsers.
"""

from __future__ import annotations

from genai_layer.chat_history import Message
from genai_layer.parsers.base import Parser
from genai_layer.parsers.message import content_of
from genai_layer.parsers.reasoning_tags import ReasoningTags


class ReasoningParser(ReasoningTags, Parser):
    """Parser of the reasoning between two tags, for "reasoning_content"."""

    def parse(self, message: Message) -> None:
        """Set "reasoning_content", empty if a tag is missing.

        Raises:
            ParseError: the message has no text.
        """
        content = content_of(message)
        before, reasoning, after = self._split(content)
        message["reasoning_content"] = reasoning
        if not self._keep:
            message["content"] = before + after

    def _split(self, content: str) -> tuple[str, str, str]:
        """Return the text before, within and after the tags; the first of each tag counts."""
        if not self._expect_open_tag:
            reasoning, after = self._split_at_close_tag(content) or (content, "")
            return "", reasoning, after
        opened, closed = content.find(self._open_tag), content.find(self._close_tag)
        if not 0 <= opened < closed:
            return content, "", ""
        begin, end = opened + len(self._open_tag), closed + len(self._close_tag)
        return content[:opened], content[begin:closed], content[end:]


class DeepSeekR1ReasoningParser(ReasoningParser):
    """Parser of DeepSeek R1's reasoning, whose open tag ends the prompt."""

    def __init__(self) -> None:
        super().__init__(expect_open_tag=False)


class Phi4ReasoningParser(ReasoningParser):
    """Parser of Phi-4's reasoning, which begins with the open tag."""

    def __init__(self) -> None:
        super().__init__(expect_open_tag=True)
