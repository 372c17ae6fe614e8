"""Content of a message, and joining of streamed messages."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from genai_layer.chat_history import Message
from genai_layer.errors import ParseError


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
