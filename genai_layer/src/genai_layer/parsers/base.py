"""Base classes of parsers; content of a message, and joining of streamed messages.

Source: openvino_genai.Parser, openvino_genai.IncrementalParser, docs/reference/genai.md#parsers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

from genai_layer.chat_history import Message
from genai_layer.checked import checked
from genai_layer.errors import ParseError
from genai_layer.streamers import StreamingStatus


class Parser:
    """Parser of a complete text; a subclass defines ``parse``."""

    def parse(self, message: Message) -> None:
        """Read and extend a message in place; "content" is the text, or an earlier parser's."""
        raise NotImplementedError(f"{type(self).__name__} has no method parse(message); define it")


class IncrementalParser:
    """Parser of a text that arrives in parts; a subclass defines ``parse`` and ``reset``."""

    _status = StreamingStatus.RUNNING

    def parse(
        self,
        delta_message: Message,
        delta_text: str,
        delta_tokens: Sequence[int] | None = None,
    ) -> str:
        """Read the next part of a text.

        Args:
            delta_message: the message of this part, to be extended in place. Earlier parsers may
                have extended it; texts are later appended to those of earlier parts.
            delta_text: the part, or what the parser before returned.
            delta_tokens: the part's tokens, if they are known.

        Returns:
            The text for the next parser, and in the end for "content"; it may be empty.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no method parse(delta_message, delta_text, delta_tokens); "
            "define it"
        )

    def reset(self) -> None:
        """Prepare for another text."""
        raise NotImplementedError(f"{type(self).__name__} has no method reset(); define it")

    def get_status(self) -> StreamingStatus:
        """Return the status; any but RUNNING ends the generation."""
        return self._status

    @checked
    def set_status(self, status: StreamingStatus) -> None:
        """Set the status, which stays until it is set again."""
        self._status = status


def content_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message.

    Raises:
        ParseError: "content" is missing or not a text.
    """
    content = message.get("content")
    if not isinstance(content, str):
        raise ParseError(f"message['content'] = {content!r}: must be the text to parse")
    return content


def extend(message: Message, delta: Mapping[str, Any]) -> None:
    """Append a delta's texts to a message's, also in nested dictionaries; copy its new entries.

    Raises:
        ParseError: an entry exists, and is not a text in both, or a dictionary in both.
    """
    for name, value in delta.items():
        known = message.get(name)
        if name not in message:
            message[name] = deepcopy(value)
        elif isinstance(known, str) and isinstance(value, str):
            message[name] = known + value
        elif isinstance(known, dict) and isinstance(value, dict):
            extend(cast(Message, known), cast(Message, value))
        else:
            raise ParseError(
                f"message[{name!r}] = {known!r}: {value!r} cannot be appended; parsers may repeat "
                "texts and dictionaries only"
            )
