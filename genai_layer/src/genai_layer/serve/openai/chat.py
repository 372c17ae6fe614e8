"""/v1/chat/completions: answers to a chat.

Source: docs/reference/openai.md#bodies.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from fastapi import APIRouter, Response

from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.limits import Limits
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.answers import (
    Answer,
    Answers,
    ScoredToken,
    Step,
    start_choices,
    textless_stops,
)
from genai_layer.serve.openai.bodies import BodyRoute
from genai_layer.serve.openai.counts import FINGERPRINT, check_count, new_id, now, usage_of
from genai_layer.serve.openai.formats import format_grammar
from genai_layer.serve.openai.log_probabilities import token_logprobs
from genai_layer.serve.openai.sampling import Bounds, configs_of
from genai_layer.serve.openai.schemas.chat import (
    AnswerDelta,
    AnswerMessage,
    CallDelta,
    ChatChoice,
    ChatChunk,
    ChatReply,
    ChatRequest,
    ChoiceDelta,
)
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.schemas.tokens import ChoiceLogprobs
from genai_layer.serve.openai.schemas.tools import CalledFunction, NamedTool, ToolCall
from genai_layer.serve.openai.streams import DONE, EventStream, error_event, event
from genai_layer.serve.openai.template_variables import template_variables
from genai_layer.serve.openai.tools.calls import Call
from genai_layer.serve.openai.tools.offer import Offer, make_offer
from genai_layer.serve.openai.tools.others import functions_among
from genai_layer.serve.openai.turn import chat_messages, prepare_turn


def chat_router(models: ModelRegistry, limits: Limits) -> APIRouter:
    """Return the routes of chats."""
    router = APIRouter(route_class=BodyRoute)

    @router.post("/v1/chat/completions", responses=replies(ChatReply, streams=True))
    async def create_chat_completion(body: ChatRequest) -> Response:
        """Answer a chat, as a whole or as a stream of events."""
        return await _respond(models, limits, body)

    return router


async def _respond(models: ModelRegistry, limits: Limits, body: ChatRequest) -> Response:
    most, alternatives = _max_tokens(body), _alternatives(body)
    offer = _offer(body)
    count = body.n or 1
    check_count(count, limits)
    model = await models.text(body.model)
    variables = template_variables(body.reasoning_effort, body.chat_template_kwargs)
    turn = await prepare_turn(
        model, chat_messages(body.messages), offer, format_grammar(body.response_format), variables
    )
    bounds = Bounds(most, alternatives, turn.grammar, calls_only=turn.calls_only)
    configs = configs_of(body, bounds, model.defaults, count)
    reply = _Chat(body, model, alternatives, new_id("chatcmpl-"), now())
    choices = await start_choices(model, [turn.prompt], configs, reply.id)
    stops = textless_stops(model.tokenizer, configs[0])
    answers = Answers(choices, count, turn.new_reader, stops, configs[0].stop_strings)
    if body.stream:
        return EventStream(reply.events(answers), choices.cancel, reply.id)
    await answers.complete()
    return Response(reply.whole(answers).json_text(), media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Chat:
    """Writer of the reply to a chat."""

    body: ChatRequest
    model: ServedTextModel
    alternatives: int | None
    id: str
    created: int

    def whole(self, answers: Answers) -> ChatReply:
        """Return the reply with complete answers."""
        return ChatReply(
            id=self.id,
            object="chat.completion",
            created=self.created,
            model=self.model.name,
            system_fingerprint=FINGERPRINT,
            choices=[self._choice(number, one) for number, one in enumerate(answers.all)],
            usage=usage_of(answers),
        )

    async def events(self, answers: Answers) -> AsyncGenerator[str]:
        """Yield the events of a stream."""
        options = self.body.stream_options
        try:
            async for number, step in answers.steps():
                for text in self._events_of(number, step):
                    yield text
            if options is not None and options.include_usage:
                chunk = self._chunk([])
                chunk.usage = usage_of(answers)
                yield event(chunk)
        except Exception as error:  # the status is sent, so the stream has to report it
            yield error_event(error)
        yield DONE

    def _events_of(self, number: int, step: Step) -> list[str]:
        """Return the events of a step: one a part, and one for the end.

        The role waits for the first step: clients take the first event for the first token.
        """
        scores = self._logprobs(step.tokens)
        calls = step.first_call
        found: list[str] = []
        if step.first:
            found.append(self._event(number, AnswerDelta(role="assistant", content="")))
        for part in step.parts:
            if isinstance(part, Call):
                delta = AnswerDelta(tool_calls=[_call_delta(part, calls)])
                calls += 1
            else:
                delta = AnswerDelta(content=part)
            found.append(self._event(number, delta, scores))
            scores = None
        if scores is not None and scores.content:
            found.append(self._event(number, AnswerDelta(content=""), scores))
        if step.finish is not None:
            found.append(self._event(number, AnswerDelta(), None, step))
        return found

    def _event(
        self,
        number: int,
        delta: AnswerDelta,
        scores: ChoiceLogprobs | None = None,
        last: Step | None = None,
    ) -> str:
        finish = None if last is None else last.finish
        choice = ChoiceDelta(index=number, delta=delta, logprobs=scores, finish_reason=finish)
        return event(self._chunk([choice]))

    def _chunk(self, choices: list[ChoiceDelta]) -> ChatChunk:
        return ChatChunk(
            id=self.id,
            object="chat.completion.chunk",
            created=self.created,
            model=self.model.name,
            system_fingerprint=FINGERPRINT,
            choices=choices,
        )

    def _choice(self, number: int, answer: Answer) -> ChatChoice:
        message = AnswerMessage(role="assistant", content=answer.text, refusal=None)
        if answer.calls:
            message.content = answer.text or None
            message.tool_calls = [_call(one) for one in answer.calls]
        return ChatChoice(
            index=number,
            message=message,
            logprobs=self._logprobs(answer.tokens),
            finish_reason=answer.finish or "stop",
        )

    def _logprobs(self, tokens: list[ScoredToken]) -> ChoiceLogprobs | None:
        if self.alternatives is None:
            return None
        content = token_logprobs(tokens, self.alternatives, self.model.tokenizer)
        return ChoiceLogprobs(content=content, refusal=None)


def _call(call: Call) -> ToolCall:
    function = CalledFunction(name=call.name, arguments=call.arguments)
    return ToolCall(id=call.id, type="function", function=function)


def _call_delta(call: Call, number: int) -> CallDelta:
    function = CalledFunction(name=call.name, arguments=call.arguments)
    return CallDelta(index=number, id=call.id, type="function", function=function)


def _max_tokens(body: ChatRequest) -> int | None:
    """Return the maximum number of tokens, which has two names.

    Raises:
        BadRequest: both are given, and differ.
    """
    if body.max_completion_tokens is None:
        return body.max_tokens
    if body.max_tokens not in (None, body.max_completion_tokens):
        raise BadRequest(
            "max_tokens: differs from max_completion_tokens; leave it out", param="max_tokens"
        )
    return body.max_completion_tokens


def _alternatives(body: ChatRequest) -> int | None:
    """Return the number of alternatives; None for no log-probabilities.

    Raises:
        BadRequest: alternatives are requested without log-probabilities.
    """
    if not body.logprobs and body.top_logprobs:
        raise BadRequest("top_logprobs: needs logprobs; set it to true", param="top_logprobs")
    return (body.top_logprobs or 0) if body.logprobs else None


def _offer(body: ChatRequest) -> Offer:
    choice = body.tool_choice
    return make_offer(
        [one.function for one in functions_among(body.tools or ())],
        choice.function if isinstance(choice, NamedTool) else choice,
        body.parallel_tool_calls,
    )
