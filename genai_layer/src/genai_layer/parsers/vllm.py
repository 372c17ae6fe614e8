"""Parsers of vLLM.

Source: openvino_genai.VLLMParserWrapper, docs/reference/genai.md#parsers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from genai_layer.chat_history import Message
from genai_layer.checked import checked
from genai_layer.errors import ConfigError, ParseError
from genai_layer.parsers.base import Parser, content_of, extend


class VLLMParserWrapper(Parser):
    """Parser that calls a tool parser or a reasoning parser of vLLM.

    Args:
        py_parser: has a method ``extract_tool_calls(text, request)``, whose result has
            ``model_dump_json`` or ``json``; or ``extract_reasoning(text, request)``, whose result
            is a tuple of reasoning and content; or both. The request is None.

    Raises:
        ConfigError: the object has neither method.
    """

    def __init__(self, py_parser: object) -> None:
        readers = {"extract_tool_calls": _tool_calls, "extract_reasoning": _reasoning}
        self._calls = [
            (cast(Callable[[str, None], Any], method), read)
            for name, read in readers.items()
            if (method := getattr(py_parser, name, None)) is not None
        ]
        if not self._calls:
            raise ConfigError(
                f"{py_parser!r} is not a parser of vLLM; it needs {' or '.join(readers)}"
            )

    @checked
    def parse(self, message: Message) -> None:
        """Update a message with the results.

        Raises:
            ParseError: the message has no text, or a result has another form.
        """
        content, results = content_of(message), Message()
        for method, read in self._calls:
            extend(results, read(method(content, None)))
        message.update(results)


def _tool_calls(found: Any) -> Message:
    names = [name for name in ("model_dump_json", "json") if hasattr(found, name)]
    if not names:
        raise ParseError(
            f"extract_tool_calls returned {found!r}: has no model_dump_json and no json"
        )
    text = getattr(found, names[0])()
    try:
        calls = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ParseError(f"extract_tool_calls, {names[0]}: {text!r} is not JSON: {error}") from None
    if not isinstance(calls, dict):
        raise ParseError(f"extract_tool_calls, {names[0]}: {text!r} is not a JSON object")
    return cast(Message, calls)


def _reasoning(found: Any) -> Message:
    if not isinstance(found, tuple) or len(cast(tuple[Any, ...], found)) != 2:
        raise ParseError(f"extract_reasoning returned {found!r}: must be (reasoning, content)")
    reasoning, content = cast(tuple[Any, Any], found)
    return {"reasoning": reasoning, "content": content}
