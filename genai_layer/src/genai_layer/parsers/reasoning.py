"""Reasoning in a complete text and in a streamed one.

Source: openvino_genai.ReasoningParser and ReasoningIncrementalParser,
docs/reference/genai.md#parsers. Ours: the joined results of a streamed text do not depend on the
parts; they are openvino_genai's for single characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from genai_layer.chat_history import Message
from genai_layer.checked import checked
from genai_layer.detokenizer import longest_beginning
from genai_layer.parsers.base import IncrementalParser, Parser, content_of


class ReasoningTags:
    """Tags around reasoning, and the use of a text's content.

    Args:
        expect_open_tag: whether the model writes the open tag; else the prompt ends with it, and
            the text begins with reasoning.
        keep_original_content: whether "content" keeps tags and reasoning.
        open_tag: begin of the reasoning.
        close_tag: end of the reasoning.

    Raises:
        ArgumentError: a tag is not a text.
    """

    @checked
    def __init__(
        self,
        expect_open_tag: bool = True,
        keep_original_content: bool = True,
        open_tag: str = "<think>",
        close_tag: str = "</think>",
    ) -> None:
        self._expect_open_tag = expect_open_tag
        self._keep = keep_original_content
        self._open_tag = open_tag
        self._close_tag = close_tag

    def _split_at_close_tag(self, text: str) -> tuple[str, str] | None:
        """Return the text before and after the first close tag; None without a close tag."""
        at = text.find(self._close_tag)
        return None if at < 0 else (text[:at], text[at + len(self._close_tag) :])


class ReasoningParser(ReasoningTags, Parser):
    """Parser of the reasoning between two tags, for "reasoning_content"."""

    @checked
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

    @checked
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
            certain = len(text) - longest_beginning(text, [self._close_tag])
            reasoning, self._held = text[:certain], text[certain:]
            closing = after = ""
        else:
            self._closed = True
            (reasoning, after), closing = parts, self._close_tag
            delta_message["content"] = after
        delta_message["reasoning_content"] = reasoning
        return opening + reasoning + closing + after if self._keep else after


class DeepSeekR1ReasoningIncrementalParser(ReasoningIncrementalParser):
    """Parser of DeepSeek R1's reasoning, whose open tag ends the prompt."""

    def __init__(self) -> None:
        super().__init__(expect_open_tag=False)


class Phi4ReasoningIncrementalParser(ReasoningIncrementalParser):
    """Parser of Phi-4's reasoning, which begins with the open tag."""

    def __init__(self) -> None:
        super().__init__(expect_open_tag=True)
