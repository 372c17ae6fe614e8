"""/v1/responses: an answer as items of text and calls of functions; nothing is stored.

Source: docs/reference/openai.md#responses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal

from fastapi import APIRouter, Response

from genai_layer.generation_config import GenerationConfig
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.answers import Answers, Step, start_choices, textless_stops
from genai_layer.serve.openai.bodies import BodyRoute
from genai_layer.serve.openai.counts import new_id, now, response_usage_of
from genai_layer.serve.openai.formats import format_grammar
from genai_layer.serve.openai.log_probabilities import token_logprobs
from genai_layer.serve.openai.output import Output
from genai_layer.serve.openai.sampling import Bounds, configs_of
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.schemas.responses import (
    LOGPROBS,
    ErrorEvent,
    Event,
    Incomplete,
    ResponseError,
    ResponseEvent,
    ResponseReply,
    ResponseRequest,
)
from genai_layer.serve.openai.schemas.tokens import TokenLogprob
from genai_layer.serve.openai.streams import EventStream, event, reported
from genai_layer.serve.openai.template_variables import template_variables
from genai_layer.serve.openai.tools.offer import make_offer
from genai_layer.serve.openai.tools.others import functions_among
from genai_layer.serve.openai.turn import prepare_turn, response_messages

Status = Literal["in_progress", "completed", "incomplete", "failed"]


def responses_router(models: ModelRegistry) -> APIRouter:
    """Return the routes of responses."""
    router = APIRouter(route_class=BodyRoute)

    @router.post("/v1/responses", responses=replies(ResponseReply, streams=True))
    async def create_response(body: ResponseRequest) -> Response:
        """Answer an input, as a whole or as a stream of typed events."""
        return await _respond(models, body)

    return router


async def _respond(models: ModelRegistry, body: ResponseRequest) -> Response:
    alternatives = _alternatives(body)
    functions = functions_among(body.tools or ())
    offer = make_offer(functions, body.tool_choice, body.parallel_tool_calls)
    messages = response_messages(body.instructions, body.input)
    model = await models.text(body.model)
    variables = template_variables(body.reasoning and body.reasoning.effort)
    turn = await prepare_turn(
        model, messages, offer, format_grammar(body.text and body.text.format), variables
    )
    most = body.max_output_tokens
    bounds = Bounds(most, alternatives, turn.grammar, calls_only=turn.calls_only)
    (config,) = configs_of(body, bounds, model.defaults)
    response = _Response(body, model, config, alternatives)
    choices = await start_choices(model, [turn.prompt], [config], response.id)
    stops = textless_stops(model.tokenizer, config)
    answers = Answers(choices, 1, turn.new_reader, stops, config.stop_strings)
    if body.stream:
        return EventStream(response.stream(answers), choices.cancel, response.id)
    try:
        async for _ in response.events(answers):
            pass
    finally:
        choices.cancel()
    return Response(response.reply(answers).json_text(), media_type="application/json")


class _Response:
    """Response as it grows.

    Args:
        body: the request.
        model: the model.
        config: parameters of the generation.
        alternatives: number of likeliest tokens at each place; None for no log-probabilities.
    """

    def __init__(
        self,
        body: ResponseRequest,
        model: ServedTextModel,
        config: GenerationConfig,
        alternatives: int | None,
    ) -> None:
        self.id = new_id("resp_")
        self._created = now()
        self._body = body
        self._model = model
        self._config = config
        self._alternatives = alternatives
        self._output = Output()
        self._status: Status = "in_progress"
        self._error: ResponseError | None = None

    async def stream(self, answers: Answers) -> AsyncGenerator[str]:
        """Yield the texts of the events; their numbers count from 0."""
        number = 0
        async for one in self._reporting(answers):
            one.sequence_number = number
            number += 1
            yield event(one, one.type)

    async def events(self, answers: Answers) -> AsyncGenerator[Event]:
        """Yield the events of a response that succeeds; errors as ``Choices``."""
        yield self._changed("response.created", answers)
        yield self._changed("response.in_progress", answers)
        async for _, step in answers.steps():
            for one in self._output.add(step.parts, self._scores(step)):
                yield one
        cut = answers.all[0].finish == "length"
        self._status = "incomplete" if cut else "completed"
        for one in self._output.end("incomplete" if cut else "completed"):
            yield one
        yield self._changed(f"response.{self._status}", answers)

    def reply(self, answers: Answers) -> ResponseReply:
        """Return the response so far."""
        body, ended = self._body, self._status in ("completed", "incomplete")
        cut = Incomplete(reason="max_output_tokens") if self._status == "incomplete" else None
        choice = body.tool_choice or "auto"
        given = body.text and body.text.format
        form = {"type": "text"} if given is None else given.model_dump(by_alias=True)
        return ResponseReply(
            id=self.id,
            object="response",
            created_at=self._created,
            status=self._status,
            error=self._error,
            incomplete_details=cut,
            model=self._model.name,
            output=list(self._output.items) if ended else [],
            usage=response_usage_of(answers) if ended else None,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            parallel_tool_calls=body.parallel_tool_calls is not False,
            previous_response_id=None,
            store=False,
            temperature=self._config.temperature if self._config.do_sample else 0.0,
            text={"format": form},
            tool_choice=choice if isinstance(choice, str) else choice.model_dump(),
            tools=[one.model_dump() for one in functions_among(body.tools or ())],
            top_logprobs=self._alternatives or 0,
            top_p=self._config.top_p,
            truncation="disabled",
        )

    async def _reporting(self, answers: Answers) -> AsyncGenerator[Event]:
        """Yield the events; an error ends them with events of its own."""
        try:
            async for one in self.events(answers):
                yield one
        except Exception as error:  # the status is sent, so the stream has to report it
            known = reported(error)
            code = known.code or known.type
            yield ErrorEvent(type="error", message=str(known), param=known.param, code=code)
            self._status = "failed"
            self._error = ResponseError(code=code, message=str(known))
            yield self._changed("response.failed", answers)

    def _changed(self, name: str, answers: Answers) -> Event:
        return ResponseEvent(type=name, response=self.reply(answers))

    def _scores(self, step: Step) -> list[TokenLogprob]:
        if self._alternatives is None:
            return []
        return token_logprobs(step.tokens, self._alternatives, self._model.tokenizer)


def _alternatives(body: ResponseRequest) -> int | None:
    """Return the number of alternatives; None for no log-probabilities.

    Raises:
        BadRequest: alternatives are requested without log-probabilities.
    """
    if LOGPROBS in (body.include or ()):
        return body.top_logprobs or 0
    if body.top_logprobs:
        raise BadRequest(
            f'top_logprobs: needs include; set it to ["{LOGPROBS}"]',
            param="top_logprobs",
        )
    return None
