"""Messages of a generation's results, ``DecodedResults.parsed``.

Source: docs/reference/genai.md#parsers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from genai_layer.chat_history import Message
from genai_layer.parsers.base import Parser
from genai_layer.parsers.streamer import TextParserStreamer


def begin_parsing(streamer: object) -> None:
    """Prepare a streamer with parsers for a generation."""
    if isinstance(streamer, TextParserStreamer):
        streamer.reset()


def parse_texts(texts: Iterable[str], parsers: Sequence[Parser], streamer: object) -> list[Message]:
    """Return a message for each text, or none without parsers.

    A streamer with parsers has parsed the only text; further parsers continue with its message.
    """
    if isinstance(streamer, TextParserStreamer):
        messages = [streamer.get_parsed_message()]
    elif parsers:
        messages = [Message(content=text) for text in texts]
    else:
        return []
    for message in messages:
        for parser in parsers:
            parser.parse(message)
    return messages
