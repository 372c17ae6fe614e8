"""A model's turn in a chat: the prompt, and the form of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.errors import TemplateError
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.messages import TemplateMessage
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

_ENCODERS: WeakKeyDictionary[ServedTextModel, PromptEncoder] = WeakKeyDictionary()
"""Encoders of the loaded models; each keeps what it computes of a tokenizer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Turn of a model."""

    prompt: list[int]
    grammar: StructuralFormat | None
    """Grammar of the answer; None for any text."""
    new_reader: Callable[[], Reader]
    """Makes a reader of one answer."""


async def prepare_turn(
    model: ServedTextModel,
    messages: Sequence[TemplateMessage],
    offer: Offer,
    text_grammar: StructuralFormat | None,
) -> Turn:
    """Return the turn of a model after messages.

    Args:
        model: the model.
        messages: the chat so far.
        offer: functions that the model may call.
        text_grammar: grammar of the text, which excludes calls.

    Raises:
        BadRequest: the model has no chat template, the template rejects the messages, or the
            model cannot write such an answer.
        PromptError: a text cannot be encoded.
    """
    if not model.tokenizer.chat_template:
        raise BadRequest(
            f"messages: the model {model.name} has no chat template; use /v1/completions",
            param="messages",
        )
    form = _form(model, offer)
    grammar = text_grammar
    if offer.functions:
        if text_grammar is not None:
            raise BadRequest(
                "tools: calls do not follow the requested format; request text, or set "
                "tool_choice to none",
                param="tools",
            )
        grammar = None if form is None else call_grammar(offer, form)
    prompt = await asyncio.to_thread(_encode, model, messages, offer)
    return Turn(prompt, grammar, _reader(form, offer))


def _form(model: ServedTextModel, offer: Offer) -> Form | None:
    """Return the form of calls; None if they stay text.

    Raises:
        BadRequest: the model does not learn of functions that it may call.
    """
    if offer.functions and not offer.forced and "tools" not in model.tokenizer.chat_template:
        raise BadRequest(
            f"tools: the chat template of {model.name} does not pass tools to the model; set "
            "tool_choice to required or to a function, or leave out tools",
            param="tools",
        )
    form = form_of(model.tokenizer)
    return JSON if form is None and offer.forced else form


def _reader(form: Form | None, offer: Offer) -> Callable[[], Reader]:
    if form is None or not offer.functions:
        return PlainReader
    kind = TaggedReader if form.begin else JsonReader
    return partial(kind, form, offer.names)


def _encode(model: ServedTextModel, messages: Sequence[TemplateMessage], offer: Offer) -> list[int]:
    encoder = _ENCODERS.get(model)
    if encoder is None:
        encoder = _ENCODERS[model] = PromptEncoder(model.tokenizer)
    history = ChatHistory(messages)
    history.set_tools(offer.definitions)
    try:
        return encoder.chat(history, RawPerfMetrics())
    except TemplateError as error:
        raise BadRequest(
            f"messages: the chat template of {model.name} rejects them: "
            f"{error.__cause__ or error}; change the messages",
            param="messages",
        ) from error
