"""Models that answer by script, over the toy's tokenizer, and an app that serves them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from genai_layer import GenAIError, GenerationConfig, GenerationFinishReason, Tokenizer
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.detokenizer import StopStrings
from genai_layer.npu import StaticLengths
from genai_layer.prompt import Prompt
from genai_layer.serve.engine.contract import Chunk, Embeddings, ModelCard, Ranking
from genai_layer.serve.errors import QueueFull, ServeError, UnknownModel, as_serve_error
from genai_layer.serve.limits import Limits
from genai_layer.serve.openai import router
from genai_layer.serve.openai.validation import describe, rejection
from genai_layer.testing.toy import EOS, write_toy_folder
from genai_layer.whisper.results import (
    WhisperDecodedResultChunk,
    WhisperDecodedResults,
    WhisperWordTiming,
)

LIMITS = Limits(queue=8)


@dataclass
class ScriptedRunning:
    """Generation of a script, a character a step; as a ``RunningRequest``."""

    model: ScriptedModel
    prompt: list[int]
    config: GenerationConfig
    text: str
    cached_tokens: int = 2
    cancelled: bool = False

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt)

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        most = self.config.max_new_tokens
        stops = StopStrings(tuple(self.config.stop_strings), self.config.include_stop_str_in_output)
        for place, letter in enumerate(self.text):
            await asyncio.sleep(0)
            if letter == "\0":
                raise self.model.failure
            if letter == "\1":
                await asyncio.Event().wait()
            token = self.model.tokenizer.encode(letter, False).input_ids.data[0].tolist()
            text = stops.feed(letter)
            last = GenerationFinishReason.LENGTH if place + 1 == most else None
            if stops.found:
                last = GenerationFinishReason.STOP
            yield self._chunk(token, text + (stops.flush() if last else ""), last)
            if last:
                return
        yield self._chunk([EOS], stops.flush(), GenerationFinishReason.STOP)

    def _chunk(self, tokens: list[int], text: str, finish: GenerationFinishReason | None) -> Chunk:
        others = ()
        if self.config.logprobs > 1:
            others = tuple((n + 10, -1.0 - n) for n in range(self.config.logprobs))
        count = len(tokens)
        return Chunk(0, tuple(tokens), (-0.5,) * count, text, finish, (others,) * count)

    def cancel(self) -> None:
        self.cancelled = True


@dataclass(eq=False)
class ScriptedModel:
    """Language model that continues prompts by script; as a ``ServedTextModel``."""

    tokenizer: Tokenizer
    scripts: list[str]
    name: str = "toy"
    room: int = 99
    lengths: StaticLengths | None = None
    failure: Exception = field(default_factory=lambda: GenAIError("the device failed"))
    submitted: list[ScriptedRunning] = field(default_factory=list)

    @property
    def defaults(self) -> GenerationConfig:
        return GenerationConfig(eos_token_id=EOS)

    async def encode(self, size: int, encode: Callable[[PromptEncoder], Any]) -> Any:
        return encode(PromptEncoder(self.tokenizer, self.lengths))

    async def encode_text(self, text: str) -> Prompt:
        return Prompt(self.tokenizer.encode(text).input_ids.data[0].tolist())

    async def submit(
        self, prompt: list[int] | Prompt, config: GenerationConfig, request_id: str
    ) -> ScriptedRunning:
        config.validate()
        if len(self.submitted) >= self.room:
            raise QueueFull("8 requests wait; try again later", headers={"Retry-After": "3"})
        if isinstance(prompt, Prompt):
            prompt = prompt.ids
        script = self.scripts[len(self.submitted) % len(self.scripts)]
        self.submitted.append(ScriptedRunning(self, prompt, config, script))
        return self.submitted[-1]

    def prompt(self) -> str:
        """Return the text of the last prompt."""
        return self.tokenizer.decode(self.submitted[-1].prompt, skip_special_tokens=False)


@dataclass
class ScriptedTexts:
    """Embeddings and ranks of lengths; as the served models."""

    name: str

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings([[len(text), 0.5] for text in texts], sum(map(len, texts)))

    async def rerank(self, query: str, documents: Sequence[str]) -> Ranking:
        scores = [(place, 1 / (1 + len(text))) for place, text in enumerate(documents)]
        return Ranking(sorted(scores, key=lambda one: -one[1]), len(query))


@dataclass
class ScriptedSpeech:
    """Speech recogniser that notes its parameters; as the served model."""

    name: str
    times_words: bool = True
    heard: list[tuple[Any, Any]] = field(default_factory=list)
    """Audio and parameters of each request."""

    def language_of(self, code: str | None) -> str | None:
        return code

    async def transcribe(self, audio: Any, parameters: Any) -> WhisperDecodedResults:
        self.heard.append((audio, parameters))
        chunks = [
            WhisperDecodedResultChunk(0.0, 1.5, " Hello"),
            WhisperDecodedResultChunk(3661.25, -1.0, " wörld --> now."),
        ]
        words = [WhisperWordTiming(" Hello", [1], 0.0, 0.5), WhisperWordTiming(" now.", [2], 1, 2)]
        return WhisperDecodedResults(
            [" Hello wörld now."],
            [1.0],
            "en",
            chunks if parameters["return_timestamps"] else None,
            words if parameters["word_timestamps"] else None,
        )


@dataclass
class ScriptedModels:
    """The models of a server; as a ``ModelRegistry``."""

    model: ScriptedModel | None = None
    """The language model, which a test sets."""
    speaker: ScriptedSpeech = field(default_factory=lambda: ScriptedSpeech("speech"))

    def names(self) -> Sequence[ModelCard]:
        return [
            ModelCard("toy", "text", 1, True),
            ModelCard("embed", "embedding", 2, False),
            ModelCard("rank", "rerank", 3, False),
            ModelCard("speech", "speech", 4, False),
        ]

    async def text(self, name: str) -> ScriptedModel:
        self._check(name, "toy")
        assert self.model is not None
        return self.model

    async def embedding(self, name: str) -> ScriptedTexts:
        self._check(name, "embed")
        return ScriptedTexts(name)

    async def rerank(self, name: str) -> ScriptedTexts:
        self._check(name, "rank")
        return ScriptedTexts(name)

    async def speech(self, name: str) -> ScriptedSpeech:
        self._check(name, "speech")
        return self.speaker

    def _check(self, name: str, known: str) -> None:
        if name != known:
            raise UnknownModel(f"model {name!r}: unknown; use {known}", param="model")


def scripted_model(folder: Path, *scripts: str, template: Any = "") -> ScriptedModel:
    settings = {"chat_template": template} if template else {}
    return ScriptedModel(Tokenizer(write_toy_folder(folder, **settings)), list(scripts))


def scripted_app(models: ScriptedModels) -> FastAPI:
    """Return the endpoints, with the server's errors."""
    app = FastAPI()
    app.include_router(router(models, LIMITS))

    @app.exception_handler(GenAIError)
    async def failed(request: Request, error: GenAIError) -> JSONResponse:
        known: ServeError = as_serve_error(error)
        return JSONResponse(known.body(), known.status, known.headers)

    @app.exception_handler(RequestValidationError)
    async def rejected(request: Request, error: RequestValidationError) -> JSONResponse:
        known = rejection(error.errors(), error.body)
        return JSONResponse(known.body(), known.status)

    @app.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> JSONResponse:
        body = {"message": error.detail, "type": "invalid_request_error", "param": None}
        return JSONResponse({"error": body | {"code": None}}, error.status_code)

    describe(app)
    return app
