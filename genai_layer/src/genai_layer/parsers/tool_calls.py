"""Tool calls in the two forms that Llama 3 writes.

Source: openvino_genai.Llama3PythonicToolParser, openvino_genai.Llama3JsonToolParser,
docs/reference/genai.md#parsers.
"""

from __future__ import annotations

import re

import pydantic_core

from genai_layer.chat_history import Message
from genai_layer.checked import checked
from genai_layer.errors import ParseError
from genai_layer.parsers.base import Parser, content_of

_BRACKETS = re.compile(r"\[([^\n\r]*?)\]")
_ARGUMENT = re.compile(r'(\w+)\s*=\s*"([^"]*)"', re.ASCII)


class Llama3PythonicToolParser(Parser):
    """Parser of the first call in brackets, e.g. ``[get_weather(location="Oslo")]``.

    "tool_calls" gets its name and the arguments in double quotes; other arguments are left out.
    """

    @checked
    def parse(self, message: Message) -> None:
        """Set "tool_calls" if the text has brackets.

        Raises:
            ParseError: the message has no text.
        """
        found = _BRACKETS.search(content_of(message))
        if found is None:
            return
        name, opened, arguments = found[1].partition("(")
        # The last character is taken to be the closing parenthesis, as in openvino_genai.
        given = dict(_ARGUMENT.findall((arguments if opened else name)[:-1]))
        message["tool_calls"] = [{"name": name, "arguments": given}]


class Llama3JsonToolParser(Parser):
    """Parser of a call as a JSON object, from the first brace to the last."""

    @checked
    def parse(self, message: Message) -> None:
        """Set "tool_calls" to a list of the object, if the text has braces.

        Raises:
            ParseError: the message has no text, or the text in braces is not JSON.
        """
        content = content_of(message)
        begin, end = content.find("{"), content.rfind("}") + 1
        if begin < 0 or end <= begin:
            return
        try:
            call = pydantic_core.from_json(content[begin:end], allow_inf_nan=False)
        except ValueError as error:
            raise ParseError(
                f"{content[begin:end]!r}: a tool call must be a JSON object: {error}"
            ) from None
        message["tool_calls"] = [call]
