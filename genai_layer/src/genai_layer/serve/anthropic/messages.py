"""/v1/messages: an answer as blocks of text and calls of tools; /v1/messages/count_tokens.

Source: docs/reference/anthropic.md.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from fastapi import APIRouter, Response

from genai_layer.serve.anthropic.blocks import Blocks, StopReader
from genai_layer.serve.anthropic.conversation import (
    parameters,
    template_messages,
    text_grammar,
    tool_offer,
)
from genai_layer.serve.anthropic.errors import (
    ANTHROPIC_ERRORS,
    PATH,
    ThreadUnsupported,
    anthropic_error,
)
from genai_layer.serve.anthropic.replies import (
    Ending,
    MessageDelta,
    MessageEvent,
    MessageReply,
    MessageStart,
    StopReason,
    StreamEvent,
    TokenCount,
    TokenUsage,
)
from genai_layer.serve.anthropic.requests import ConversationRequest, MessageRequest
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.answers import Answers, start_choices, textless_stops
from genai_layer.serve.openai.bodies import BodyRoute
from genai_layer.serve.openai.counts import new_id, usage_of
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.streams import EventStream, event, reported
from genai_layer.serve.openai.turn import Turn, prepare_turn

_REASONS: dict[str, StopReason] = {"length": "max_tokens", "tool_calls": "tool_use"}


def messages_router(models: ModelRegistry) -> APIRouter:
    """Return the routes of messages."""
    router = APIRouter(tags=["Anthropic"], route_class=BodyRoute)
    described = replies(MessageReply, streams=True) | ANTHROPIC_ERRORS

    @router.post(PATH, responses=described)
    async def create_message(body: MessageRequest) -> Response:
        """Answer a conversation, as a whole or as a stream of events."""
        return await _respond(models, body)

    @router.post(f"{PATH}/count_tokens", responses=replies(TokenCount) | ANTHROPIC_ERRORS)
    async def count_message_tokens(body: ConversationRequest) -> Response:
        """Count the tokens of a conversation's prompt, which may be too long for the model."""
        _, turn = await _turn(models, body, limited=False)
        return _json(TokenCount(input_tokens=len(turn.prompt.ids)))

    return router


async def _turn(
    models: ModelRegistry, body: ConversationRequest, *, limited: bool = True
) -> tuple[ServedTextModel, Turn]:
    offer, messages = tool_offer(body), template_messages(body)
    model = await models.text(body.model)
    return model, await prepare_turn(model, messages, offer, text_grammar(body), limited=limited)


async def _respond(models: ModelRegistry, body: MessageRequest) -> Response:
    _check(body)
    model, turn = await _turn(models, body)
    config = parameters(body, turn, model.defaults)
    reader = StopReader(turn.new_reader(), [*config.stop_strings])
    message = _Message(model.name, reader)
    choices = await start_choices(model, [turn.prompt], [config], message.id)
    stops = textless_stops(model.tokenizer, config)
    answers = Answers(choices, 1, lambda: reader, stops, config.stop_strings)
    if body.stream:
        return EventStream(message.stream(answers), choices.cancel, message.id)
    try:
        async for _ in message.events(answers):
            pass
    finally:
        choices.cancel()
    return _json(message.reply(answers))


def _check(body: MessageRequest) -> None:
    """Check that all messages are there, and the model's turn follows.

    Raises:
        BadRequest: the conversation is to be stored, or the last message is an answer.
    """
    if body.thread is not None:
        raise ThreadUnsupported(
            "thread: conversations are not stored; send all messages, and leave it out",
            param="thread",
        )
    last = len(body.messages) - 1
    if body.messages[last].role == "assistant":
        place = f"messages.{last}"
        raise BadRequest(
            f"{place}: an answer, which is not continued; end with a message of the user",
            param=place,
        )


def _json(reply: MessageReply | TokenCount) -> Response:
    return Response(reply.json_text(), media_type="application/json")


class _Message:
    """Message as it grows.

    Args:
        model: name of the model.
        reader: reader of the answer.
    """

    def __init__(self, model: str, reader: StopReader) -> None:
        self.id = new_id("msg_")
        self._model = model
        self._reader = reader
        self._blocks = Blocks()
        self._reason: StopReason | None = None
        self._stop: str | None = None

    async def stream(self, answers: Answers) -> AsyncGenerator[str]:
        """Yield the texts of the events; an error ends them."""
        try:
            async for one in self.events(answers):
                yield event(one, one.type)
        except Exception as error:  # the status is sent, so the stream has to report it
            known = reported(error)
            yield event(anthropic_error(known.status, str(known), known.code), "error")

    async def events(self, answers: Answers) -> AsyncGenerator[StreamEvent]:
        """Yield the events of a message that succeeds; errors as ``Choices``.

        The message starts when the model has read the prompt; until then, a ping shows that the
        server works.
        """
        yield MessageEvent(type="ping")
        async for _, step in answers.steps():
            if step.first:
                yield MessageStart(type="message_start", message=self.reply(answers))
            for one in self._blocks.add(step.parts):
                yield one
        for one in self._blocks.end():
            yield one
        self._end(answers.all[0].finish)
        ending = Ending(stop_reason=self._reason, stop_sequence=self._stop)
        yield MessageDelta(type="message_delta", delta=ending, usage=_usage(answers))
        yield MessageEvent(type="message_stop")

    def reply(self, answers: Answers) -> MessageReply:
        """Return the message so far."""
        return MessageReply(
            id=self.id,
            type="message",
            role="assistant",
            model=self._model,
            content=list(self._blocks.content),
            stop_reason=self._reason,
            stop_sequence=self._stop,
            usage=_usage(answers),
        )

    def _end(self, finish: str | None) -> None:
        """Note the reason for the end."""
        stopped = finish == "stop" and self._reader.found is not None
        self._stop = self._reader.found if stopped else None
        self._reason = "stop_sequence" if stopped else _REASONS.get(finish or "", "end_turn")


def _usage(answers: Answers) -> TokenUsage:
    """Return the counts of tokens so far."""
    usage = usage_of(answers)
    cached = usage.prompt_tokens_details.cached_tokens
    return TokenUsage(
        input_tokens=usage.prompt_tokens - cached,
        cache_creation_input_tokens=0,
        cache_read_input_tokens=cached,
        output_tokens=usage.completion_tokens,
    )
