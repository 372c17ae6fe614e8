"""A model's turn in a chat: messages as templates read them, the prompt, the form of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from pydantic_core import PydanticCustomError

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.chat_templates.generic_tools import arguments_of
from genai_layer.errors import TemplateError
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.prompt import Prompt
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.schemas.base import bounded
from genai_layer.serve.openai.schemas.items import (
    Input,
    InputCall,
    InputContent,
    InputMessage,
    InputResult,
)
from genai_layer.serve.openai.schemas.messages import (
    AssistantMessage,
    Content,
    Message,
    PastFunction,
)
from genai_layer.serve.openai.tools.calls import (
    JSON,
    Form,
    JsonReader,
    PlainReader,
    Reader,
    TaggedReader,
    form_of,
)
from genai_layer.serve.openai.tools.offer import Offer, call_grammar
from genai_layer.structured.formats import StructuralFormat
from genai_layer.tokenizer import Tokenizer

TemplateMessage = dict[str, Any]
"""Message of a chat template: a role, a text, and calls whose arguments are objects."""

_ROLES = {"developer": "system"}
"""Roles that chat templates know under another name."""


_SHOWN = {"name", "tool_call_id", "reasoning_content"}
"""Fields of messages that chat templates read under the same names."""


def chat_messages(messages: Sequence[Message]) -> list[TemplateMessage]:
    """Return the messages of a chat.

    Raises:
        BadRequest: the arguments of an earlier call are no JSON object.
    """
    return [_chat_message(message, number) for number, message in enumerate(messages)]


def response_messages(instructions: str | None, given: Input) -> list[TemplateMessage]:
    """Return the messages of a response's input; calls join the message of the assistant.

    Raises:
        BadRequest: the arguments of an earlier call are no JSON object.
    """
    found = [] if instructions is None else [_message("system", instructions)]
    if isinstance(given, str):
        return [*found, _message("user", given)]
    for number, item in enumerate(given):
        if isinstance(item, InputCall):
            if not found or found[-1]["role"] != "assistant":
                found.append(_message("assistant", ""))
            call = _call(item.call_id, item.name, item.arguments, f"input.{number}.arguments")
            found[-1].setdefault("tool_calls", []).append(call)
        else:
            found.append(_input_message(item))
    return found


def _chat_message(message: Message, number: int) -> TemplateMessage:
    found = _message(message.role, _text(message.content))
    found |= message.model_dump(include=_SHOWN, exclude_none=True)
    if isinstance(message, AssistantMessage) and message.tool_calls:
        found["tool_calls"] = [
            _past_call(one.id, one.function, f"messages.{number}.tool_calls.{place}.function")
            for place, one in enumerate(message.tool_calls)
        ]
    return found


def _input_message(item: InputMessage | InputResult) -> TemplateMessage:
    if isinstance(item, InputResult):
        return _message("tool", _text(item.output)) | {"tool_call_id": item.call_id}
    return _message(item.role, _text(item.content))


def _message(role: str, content: str) -> TemplateMessage:
    return {"role": _ROLES.get(role, role), "content": content}


def _text(content: Content | InputContent | None) -> str:
    """Return the text of a message; parts begin on lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content)


def _past_call(call_id: str, function: PastFunction, place: str) -> dict[str, Any]:
    return _call(call_id, function.name, function.arguments, f"{place}.arguments")


def _call(call_id: str, name: str, arguments: str, place: str) -> dict[str, Any]:
    """Return a call, with its arguments as an object.

    Raises:
        BadRequest: the arguments are no JSON object, or not of bounded depth.
    """
    try:
        found = bounded(arguments_of(arguments))
    except PydanticCustomError as error:
        raise BadRequest(f"{place}: {error.message()}", param=place) from None
    except ValueError:
        message = f"{place}: no JSON object; pass the arguments as generated"
        raise BadRequest(message, param=place) from None
    function = {"name": name, "arguments": found}
    return {"id": call_id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Turn:
    """Turn of a model."""

    prompt: Prompt
    grammar: StructuralFormat | None
    """Grammar of the answer; None for any text."""
    new_reader: Callable[[], Reader]
    """Makes a reader of one answer."""
    calls_only: bool
    """The answer is calls alone."""


async def prepare_turn(
    model: ServedTextModel,
    messages: Sequence[TemplateMessage],
    offer: Offer,
    text_grammar: StructuralFormat | None,
    variables: Mapping[str, Any] | None = None,
    *,
    limited: bool = True,
) -> Turn:
    """Return the turn of a model after messages.

    Args:
        model: the model.
        messages: the chat so far.
        offer: functions that the model may call.
        text_grammar: grammar of an answer that is no call; None for any text.
        variables: further variables of the chat template.
        limited: reject a prompt that is too long for the model before it is encoded.

    Raises:
        BadRequest: the model has no chat template, the template rejects the messages, or the
            model cannot write such an answer.
        PromptError, QueueFull, ShuttingDown, TooLong: see ``ServedTextModel.encode``.
    """
    if not model.tokenizer.template_for(bool(offer.functions)):
        raise BadRequest(
            f"messages: the model {model.name} has no chat template; use /v1/completions",
            param="messages",
        )

    def make(encoder: PromptEncoder) -> Turn:
        form = None
        grammar = text_grammar
        if offer.functions:
            form = _form(model.tokenizer, guided=offer.forced or text_grammar is not None)
            grammar = None if form is None else call_grammar(offer, form, text_grammar)
        chosen = encoder if limited else encoder.unlimited
        prompt = _encode(model.name, chosen, messages, offer, variables or {})
        return Turn(prompt, grammar, _reader(form, offer), offer.forced)

    return await model.encode(_characters([messages, offer.definitions, variables]), make)


def _characters(value: Any) -> int:
    """Return the number of characters in the texts of messages and definitions."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_characters, cast(Mapping[str, Any], value).values()))
    if isinstance(value, Sequence):
        return sum(map(_characters, cast(Sequence[Any], value)))
    return 0


def _form(tokenizer: Tokenizer, *, guided: bool) -> Form | None:
    """Return the form of calls, which a grammar may guide; None if calls stay text."""
    form = form_of(tokenizer)
    return JSON if form is None and guided else form


def _reader(form: Form | None, offer: Offer) -> Callable[[], Reader]:
    if form is None:
        return PlainReader
    kind = TaggedReader if form.begin else JsonReader
    return partial(kind, form, offer.names)


def _encode(
    name: str,
    encoder: PromptEncoder,
    messages: Sequence[TemplateMessage],
    offer: Offer,
    variables: Mapping[str, Any],
) -> Prompt:
    history = ChatHistory(messages)
    history.set_tools(offer.definitions)
    history.set_extra_context(variables)
    try:
        return encoder.chat(history, RawPerfMetrics())
    except TemplateError as error:
        raise BadRequest(
            f"messages: {name}: {error.problem}; change the messages or the tools",
            param="messages",
        ) from error
