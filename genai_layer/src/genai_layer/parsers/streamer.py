"""Streamer with incremental parsers, and messages of a generation's results, ``parsed``.

Source: openvino_genai.TextParserStreamer, DecodedResults.parsed, docs/reference/genai.md#parsers.
Ours: each token is passed to parsers once, with the text that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from operator import index
from typing import SupportsIndex

from genai_layer.chat_history import Message
from genai_layer.checked import checked
from genai_layer.detokenizer import Detokenizer
from genai_layer.parsers.base import IncrementalParser, Parser, extend
from genai_layer.streamers import Answer, Decodes, StreamingStatus, TextStreamer, read_status


class TextParserStreamer(TextStreamer):
    """Streamer that passes messages to ``write``, which a subclass defines.

    A message is passed when the next text arrives, because tokens without text, such as special
    tokens, belong to the text before them.

    Args:
        tokenizer: decodes the tokens.
        parsers: applied to each text, in this order.

    Raises:
        ArgumentError: a parser is not an IncrementalParser, or no list is given.
    """

    @checked
    def __init__(self, tokenizer: Decodes, parsers: Iterable[IncrementalParser] = ()) -> None:
        super().__init__(tokenizer, lambda text: None)
        self._parsers = tuple(parsers)
        self._clear()

    @property
    def takes_text(self) -> bool:
        """True: the pipeline's text ends before a stop string, which tokens may cross."""
        return True

    def write(self, message: Message) -> Answer:  # pyright: ignore[reportIncompatibleMethodOverride] (openvino_genai's interface)
        """Receive the message of a text: "content" and what parsers add; return a status."""
        raise NotImplementedError(f"{type(self).__name__} has no method write(message); define it")

    @checked
    def write_text(self, text: str, tokens: Sequence[int] = ()) -> StreamingStatus:
        """Receive tokens and the text that they complete, often none."""
        if not text:
            textless = not self._open and self._text and not self._decode(list(tokens))
            (self._tokens if textless else self._open).extend(tokens)
            return StreamingStatus.RUNNING
        status = self._flush()
        self._text, self._tokens, self._open = text, [*self._open, *tokens], []
        return status

    def end(self) -> None:
        """Pass on the remaining text."""
        self.write_text(self._detokenizer.flush())
        self._flush()
        self._detokenizer = Detokenizer(self._decode)

    def reset(self) -> None:
        """Prepare for another text; a pipeline calls it before each generation."""
        self._clear()
        for parser in self._parsers:
            parser.reset()

    def get_parsed_message(self) -> Message:
        """Return the messages so far as one, whose texts are joined."""
        return deepcopy(self._message)

    def _write(self, chunk: str | Sequence[SupportsIndex]) -> StreamingStatus:
        """Receive a text, or tokens; for tests, as in openvino_genai."""
        if isinstance(chunk, str):
            return self._parse(chunk, [])
        tokens = [index(token) for token in chunk]
        return self.write_text("".join([self._detokenizer.add(token) for token in tokens]), tokens)

    def _clear(self) -> None:
        self._detokenizer = Detokenizer(self._decode)
        self._message: Message = {"content": ""}
        self._text = ""
        """Text that waits for the next one, and its tokens."""
        self._tokens: list[int] = []
        self._open: list[int] = []
        """Tokens whose text is not complete."""

    def _flush(self) -> StreamingStatus:
        text, tokens = self._text, self._tokens
        self._text, self._tokens = "", []
        return self._parse(text, tokens) if text else StreamingStatus.RUNNING

    def _parse(self, text: str, tokens: Sequence[int]) -> StreamingStatus:
        """Apply the parsers, and pass the message on; a parser's status precedes that of write."""
        delta = Message()
        status = StreamingStatus.RUNNING
        for parser in self._parsers:
            text = parser.parse(delta, text, list(tokens))
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
                raise TypeError(f"{type(parser).__name__}.parse must return a text, not {text!r}")
            status = parser.get_status()
            if status is not StreamingStatus.RUNNING:
                break
        delta["content"] = text
        extend(self._message, delta)
        answer = self.write(delta)
        if answer is None:
            raise TypeError(f"{type(self).__name__}.write must return a StreamingStatus or a bool")
        return read_status(answer) if status is StreamingStatus.RUNNING else status


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
