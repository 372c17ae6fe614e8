"""Generic form of tools, for chat templates that do not show them.

A system message describes the tools and teaches the form of calls, earlier calls are text of the
assistant, and their results are text of the user.

Source: measured on openvino_genai 2026.4, whose engine (minja) does the same; the words and the
form of generic calls, which is that of Hermes, are ours.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

from genai_layer.chat_history import Message
from genai_layer.errors import TemplateError

_log = logging.getLogger(__name__)

CALL, END_OF_CALL = "<tool_call>", "</tool_call>"
"""Tags around a generic call."""

_DESCRIPTION = f"""\
You can call these functions:
{{}}
To call one, write its name and its arguments between tags:
{CALL}
{{{{"name": "function", "arguments": {{{{"argument": "value"}}}}}}}}
{END_OF_CALL}"""


@lru_cache(maxsize=16)
def report_generic_tools(source: str) -> None:
    """Report once that a template does not show tools."""
    del source
    _log.warning(
        "the chat template does not show tools: a system message describes them, and calls are "
        "JSON between %s and %s; for another form, set a template that shows tools",
        CALL,
        END_OF_CALL,
    )


def describe_tools(tools: Sequence[Any]) -> str:
    """Return a text that describes tools and teaches the form of calls.

    Raises:
        TemplateError: a tool is not JSON.
    """
    return _DESCRIPTION.format(
        "\n".join(_json(tool, f"tools[{number}]") for number, tool in enumerate(tools))
    )


def without_calls(messages: Sequence[Message]) -> list[Message]:
    """Return messages with all calls and results as text.

    Raises:
        TemplateError: a call or a result is not JSON, or a call has another form.
    """
    found: list[Message] = []
    places = [(f"messages[{number}]", one) for number, one in enumerate(messages)]
    for are_results, group in groupby(places, lambda each: each[1].get("role") == "tool"):
        if are_results:
            content = "\n".join(_result(message, place) for place, message in group)
            found.append({"role": "user", "content": content})
        else:
            found += [_with_calls_as_text(message, place) for place, message in group]
    return found


def arguments_of(given: object) -> dict[str, Any]:
    """Return the arguments of an earlier call, an object or its JSON text, as an object.

    Clients write "", "null" or nothing for no arguments.

    Raises:
        ValueError: the arguments are no JSON object.
    """
    try:
        text = given.strip() if isinstance(given, str) else None
        found: object = given if text is None else json.loads(text or "null")
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if found is not None and not isinstance(found, dict):
        raise ValueError("no JSON object")
    return cast(dict[str, Any], found or {})


def _result(message: Message, place: str) -> str:
    return f"<tool_response>\n{_text(message, place)}\n</tool_response>"


def _with_calls_as_text(message: Message, place: str) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    if not isinstance(calls, list):
        raise _error(f"{place}.tool_calls", "must be a list")
    texts = [
        _call(call, f"{place}.tool_calls[{number}]")
        for number, call in enumerate(cast(list[object], calls))
    ]
    others = {name: value for name, value in message.items() if name != "tool_calls"}
    return {**others, "content": "\n".join([_text(message, place), *texts]).strip()}


def _call(call: object, place: str) -> str:
    """Return a call as text; its name and arguments may stand beside the id."""
    outer = cast(dict[str, Any], call) if isinstance(call, dict) else {}
    inner = outer.get("function") or outer
    function = cast(dict[str, Any], inner) if isinstance(inner, dict) else {}
    name = function.get("name")
    if not isinstance(name, str):
        raise _error(place, "has no function with a name")
    arguments = _arguments(function.get("arguments"), place)
    return f'{CALL}\n{{"name": {_json(name, place)}, "arguments": {arguments}}}\n{END_OF_CALL}'


def _arguments(given: object, place: str) -> str:
    """Return arguments as JSON; a text stays, whose escapes may hide special tokens."""
    try:
        found = arguments_of(given)
    except ValueError:
        raise _error(place, "the arguments are no JSON object") from None
    return given.strip() if found and isinstance(given, str) else _json(found, place)


def _text(message: Message, place: str) -> str:
    """Return the content of a message as text; parts begin on lines of their own."""
    content = message.get("content")
    parts = cast(list[object], content) if isinstance(content, list) else [content]
    return "\n".join(_part(part, f"{place}.content") for part in parts)


def _part(part: object, place: str) -> str:
    """Return the text of a text or a part of text; JSON of anything else."""
    if part is None:
        return ""
    text: object = cast(Message, part).get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else _json(cast(object, part), place)


def _json(value: object, place: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _error(place, f"is not JSON: {error}") from error


def _error(place: str, problem: str) -> TemplateError:
    return TemplateError(f"{place}: {problem}", "pass JSON in the form of OpenAI's API")
