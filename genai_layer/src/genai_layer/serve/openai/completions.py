"""/v1/completions: texts after prompts, without a chat template, and the bodies.

Source: docs/reference/openai.md#bodies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Response
from pydantic import Field

from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.limits import Limits
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.answers import Answers, ScoredToken, start_choices
from genai_layer.serve.openai.bodies import BodyRoute
from genai_layer.serve.openai.counts import FINGERPRINT, check_count, new_id, now, usage_of
from genai_layer.serve.openai.log_probabilities import completion_logprobs
from genai_layer.serve.openai.sampling import Bounds, configs_of
from genai_layer.serve.openai.schemas.base import (
    MOST_ALTERNATIVES,
    Choosing,
    Reply,
    TokenId,
)
from genai_layer.serve.openai.schemas.errors import replies
from genai_layer.serve.openai.schemas.tokens import CompletionLogprobs, Usage
from genai_layer.serve.openai.streams import DONE, EventStream, error_event, event
from genai_layer.serve.openai.tools.calls import PlainReader

_Ids = Annotated[list[TokenId], Field(min_length=1)]


class CompletionRequest(Choosing):
    """Prompts to continue."""

    prompt: (
        str
        | Annotated[list[str], Field(min_length=1)]
        | _Ids
        | Annotated[list[_Ids], Field(min_length=1)]
    )
    """Texts, or ids of tokens; no chat template is applied."""
    max_tokens: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    """16 by default; 0, with an echo, for the prompt alone."""
    logprobs: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES)] | None = None
    """Number of likeliest tokens at each place, beside the token there."""
    echo: bool | None = None
    """Begin each text with its prompt; with logprobs, also the lists."""
    best_of: Literal[1] | None = None
    suffix: None = None


class CompletionChoice(Reply):
    """One of the texts: prompt p and choice c of n have the index p × n + c."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"] | None
    """Set in the last part of a stream."""


class CompletionReply(Reply):
    """Texts after prompts; also the event of a stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


Prompt = str | list[int]

_MOST_TOKENS = 16
"""Maximum number of tokens if a request has none."""


def completions_router(models: ModelRegistry, limits: Limits) -> APIRouter:
    """Return the routes of completions."""
    router = APIRouter(route_class=BodyRoute)

    @router.post("/v1/completions", responses=replies(CompletionReply, streams=True))
    async def create_completion(body: CompletionRequest) -> Response:
        """Continue prompts, as a whole or as a stream of events."""
        return await _respond(models, limits, body)

    return router


async def _respond(models: ModelRegistry, limits: Limits, body: CompletionRequest) -> Response:
    prompts, each = _prompts(body.prompt), body.n or 1
    check_count(len(prompts) * each, limits)
    model = await models.text(body.model)
    bounds = _bounds(body)
    configs = configs_of(body, bounds, model.defaults, each)
    echoed = await asyncio.to_thread(_texts, prompts, model) if body.echo else [""] * len(prompts)
    beginnings = [text for text in echoed for _ in configs]
    reply = _Completion(body, model, beginnings, new_id("cmpl-"), now())
    choices = await start_choices(model, prompts, configs, reply.id)
    answers = Answers(choices, len(prompts) * each, PlainReader, frozenset())
    if body.stream:
        return EventStream(reply.events(answers), choices.cancel, reply.id)
    await answers.complete()
    return Response(reply.whole(answers).json_text(), media_type="application/json")


def _bounds(body: CompletionRequest) -> Bounds:
    """Return the bounds of the texts.

    Raises:
        BadRequest: neither a prompt nor tokens are requested.
    """
    most = _MOST_TOKENS if body.max_tokens is None else body.max_tokens
    if not most and not body.echo:
        raise BadRequest(
            "max_tokens = 0: needs echo; set it to true, or request a token", param="max_tokens"
        )
    scored = bool(body.echo) and (body.logprobs is not None or not most)
    return Bounds(most, body.logprobs, echo=scored)


def _prompts(given: str | list[str] | list[int] | list[list[int]]) -> list[Prompt]:
    """Return a list of prompts."""
    if isinstance(given, str) or isinstance(given[0], int):
        return [cast(Prompt, given)]
    return cast(list[Prompt], given)


def _texts(prompts: Sequence[Prompt], model: ServedTextModel) -> list[str]:
    """Return the text of each prompt."""
    decode = model.tokenizer.decode
    return [one if isinstance(one, str) else decode(one, False) for one in prompts]


@dataclass(frozen=True, slots=True)
class _Completion:
    """Writer of the reply to prompts."""

    body: CompletionRequest
    model: ServedTextModel
    echoed: list[str]
    """Beginning of each text."""
    id: str
    created: int

    def whole(self, answers: Answers) -> CompletionReply:
        """Return the reply with complete texts."""
        choices = [
            CompletionChoice(
                index=number,
                text=self.echoed[number] + answer.text,
                logprobs=self._logprobs(answer.tokens, 0),
                finish_reason=_plain(answer.finish),
            )
            for number, answer in enumerate(answers.all)
        ]
        reply = self._reply(choices)
        reply.usage = usage_of(answers)
        return reply

    async def events(self, answers: Answers) -> AsyncGenerator[str]:
        """Yield the events of a stream."""
        options = self.body.stream_options
        try:
            lengths = [len(text) for text in self.echoed]
            async for number, step in answers.steps():
                if step.first and self.echoed[number]:
                    yield self._event(number, self.echoed[number], None, None)
                # The first step has the tokens of an echoed prompt.
                scores = self._logprobs(step.tokens, 0 if step.first else lengths[number])
                text = "".join(part for part in step.parts if isinstance(part, str))
                lengths[number] += len(text)
                if text or step.tokens or step.finish:
                    yield self._event(number, text, scores, _plain(step.finish))
            if options is not None and options.include_usage:
                reply = self._reply([])
                reply.usage = usage_of(answers)
                yield event(reply)
        except Exception as error:  # the status is sent, so the stream has to report it
            yield error_event(error)
        yield DONE

    def _event(
        self,
        number: int,
        text: str,
        scores: CompletionLogprobs | None,
        finish: Literal["stop", "length"] | None,
    ) -> str:
        choice = CompletionChoice(index=number, text=text, logprobs=scores, finish_reason=finish)
        return event(self._reply([choice]))

    def _reply(self, choices: list[CompletionChoice]) -> CompletionReply:
        return CompletionReply(
            id=self.id,
            object="text_completion",
            created=self.created,
            model=self.model.name,
            system_fingerprint=FINGERPRINT,
            choices=choices,
        )

    def _logprobs(self, tokens: list[ScoredToken], offset: int) -> CompletionLogprobs | None:
        if self.body.logprobs is None:
            return None
        return completion_logprobs(tokens, self.body.logprobs, self.model.tokenizer, offset)


def _plain(finish: str | None) -> Literal["stop", "length"] | None:
    """Return the reason for the end of a text without calls."""
    return cast(Literal["stop", "length"] | None, finish)
