"""Messages in the form that a chat template supports: tools, system messages, content in parts.

A template without tools gets them in the generic form: a system message describes the tools and
teaches the form of calls, earlier calls are text of the assistant, and their results are text of
the user. A template without system messages gets them in the next user message.

Source: measured on openvino_genai 2026.4, whose engine (minja) does the same; the words and the
form of generic calls, which is that of Hermes, are ours.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

from genai_layer.chat_history import Message
from genai_layer.chat_template import render
from genai_layer.template_support import TemplateSupport, parts_of

_log = logging.getLogger(__name__)

CALL, END_OF_CALL = "<tool_call>", "</tool_call>"
"""Tags around a generic call."""

_DESCRIPTION = f"""\
You can call these functions:
{{% for tool in tools %}}
{{{{ tool | tojson }}}}
{{% endfor %}}
To call one, write its name and its arguments between tags:
{CALL}
{{"name": "function", "arguments": {{"argument": "value"}}}}
{END_OF_CALL}"""

_CALLS = f"""\
{{{{ content or '' }}}}
{{% for call in calls %}}
{{% set function = call.function or call %}}
{{% set given = function.arguments %}}
{CALL}
{{"name": {{{{ function.name | tojson }}}}, "arguments": \
{{{{ given if given is string else given | tojson }}}}}}
{END_OF_CALL}
{{% endfor %}}"""

_RESULT = "<tool_response>\n{{ content }}\n</tool_response>"


def fitted(
    messages: Sequence[Message], tools: Sequence[Any], support: TemplateSupport
) -> list[Message]:
    """Return messages that a template shows completely.

    Args:
        messages: the chat.
        tools: the tools of the chat.
        support: the template's.

    Raises:
        TemplateError: a tool or an earlier call is not JSON.
    """
    found = list(messages)
    if not support.tools:
        found = _with_generic_tools(found, tools)
    if not support.system:
        found = _without_system(found)
    if not support.texts:
        found = [{**one, "content": parts_of(one.get("content"))} for one in found]
    return found


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


def _with_generic_tools(messages: Sequence[Message], tools: Sequence[Any]) -> list[Message]:
    """Return messages with all tools, calls and results as text."""
    found: list[Message] = []
    for results, group in groupby(messages, lambda message: message.get("role") == "tool"):
        if results:
            content = "\n".join(_rendered(_RESULT, content=_text(one)) for one in group)
            found.append({"role": "user", "content": content})
        else:
            found += map(_with_calls_as_text, group)
    if tools:
        described = _rendered(_DESCRIPTION, tools=tools)
        if found and found[0].get("role") == "system":
            described = _joined([found.pop(0).get("content"), described], "\n\n")
        found.insert(0, {"role": "system", "content": described})
    return found


def _with_calls_as_text(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    others = {name: value for name, value in message.items() if name != "tool_calls"}
    return {**others, "content": _rendered(_CALLS, content=_text(message), calls=calls)}


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which system messages begin the next user message, or are one."""
    found: list[Message] = []
    pending: list[Any] = []
    for message in messages:
        content, role = message.get("content"), message.get("role")
        if role == "system":
            pending.append(content)
            continue
        if pending and role == "user":
            message = {**message, "content": _joined([*pending, content], "\n")}
        elif pending:
            found.append({"role": "user", "content": _joined(pending, "\n")})
        pending = []
        found.append(message)
    return [*found, {"role": "user", "content": _joined(pending, "\n")}] if pending else found


def _joined(contents: Sequence[Any], separator: str) -> Any:
    """Return contents as one: a text, or parts if one of them has parts."""
    if all(content is None or isinstance(content, str) for content in contents):
        return separator.join(filter(None, contents))
    parts: list[Any] = []
    for content in contents:
        parts += content if isinstance(content, list) else parts_of(str(content or ""))
    return parts


def _text(message: Message) -> str:
    """Return the text of a message; parts begin on lines of their own."""
    content = message.get("content")
    if not isinstance(content, list):
        return str(content or "")
    parts = (cast(Message, part) for part in cast(list[object], content) if isinstance(part, dict))
    return "\n".join(str(part.get("text", "")) for part in parts)


def _rendered(source: str, **variables: Any) -> str:
    return render(source, (), False, variables).strip()
