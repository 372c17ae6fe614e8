"""/v1/audio/transcriptions: the text of speech.

Source: docs/reference/openai.md#transcriptions.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from genai_layer.serve.engine.speech import ServedSpeechModel
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.audio.form import Form, read_form
from genai_layer.serve.openai.audio.subtitles import srt, vtt
from genai_layer.serve.openai.audio.wav import RATE, read_wav
from genai_layer.serve.openai.schemas.base import Body, Reply, Temperature
from genai_layer.serve.openai.schemas.errors import Replies, replies
from genai_layer.serve.openai.validation import rejection
from genai_layer.whisper.results import WhisperDecodedResults

_WORD, _SEGMENT = "word", "segment"
_TIMES = "timestamp_granularities[]"
_TIMED = ("verbose_json", "srt", "vtt")
"""Formats with times."""


def _off(value: bool) -> bool:
    """Return False.

    Raises:
        PydanticCustomError: the value is True.
    """
    if value:
        raise PydanticCustomError("unsupported", "is not supported; leave it out")
    return value


class TranscriptionRequest(Body, strict=False):
    """Fields of the form beside ``file``, as texts."""

    model: str
    language: str | None = None
    """E.g. "en"; by default, the model detects it."""
    prompt: str | None = None
    """Text before the first window's, e.g. names and their spelling."""
    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] = "json"
    temperature: Annotated[Temperature, Field(le=1)] | None = None
    granularities: list[Literal["word", "segment"]] = Field(default=[_SEGMENT], alias=_TIMES)
    """Times in verbose_json."""
    stream: Annotated[bool, AfterValidator(_off)] | None = None
    chunking_strategy: None = None
    include: None = Field(default=None, alias="include[]")
    keywords: None = Field(default=None, alias="keywords[]")
    languages: None = Field(default=None, alias="languages[]")
    speaker_names: None = Field(default=None, alias="known_speaker_names[]")
    speaker_references: None = Field(default=None, alias="known_speaker_references[]")


class Segment(Reply):
    """Part of a text between two timestamps, in seconds."""

    id: int
    start: float
    end: float
    text: str


class Word(Reply):
    """Word with its times in seconds."""

    word: str
    """Word and the punctuation after it."""
    start: float
    end: float


class AudioUsage(Reply):
    """Length of the audio."""

    type: Literal["duration"]
    seconds: float


class Transcription(Reply):
    """Text of speech; all but text and usage in verbose_json alone."""

    text: str
    task: Literal["transcribe"] | None = None
    language: str | None = None
    """Given or detected language, e.g. "en"."""
    duration: float | None = None
    segments: list[Segment] | None = None
    words: list[Word] | None = None
    usage: AudioUsage


def audio_router(models: ModelRegistry) -> APIRouter:
    """Return the route of transcriptions."""
    router = APIRouter()

    @router.post("/v1/audio/transcriptions", responses=_replies(), openapi_extra=_described())
    async def create_transcription(request: Request) -> Response:
        """Return the text of speech."""
        form = await asyncio.to_thread(
            read_form, request.headers.get("content-type", ""), await request.body()
        )
        return await _respond(models, form)

    return router


def _replies() -> Replies:
    found = replies(Transcription)
    found[200]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    return found


def _described() -> dict[str, Any]:
    """Return the form's description in OpenAPI."""
    schema = TranscriptionRequest.model_json_schema()
    schema["properties"]["file"] = {"type": "string", "format": "binary"}
    schema["required"].append("file")
    content = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


async def _respond(models: ModelRegistry, form: Form) -> Response:
    body, file = _request(form), form.files["file"]
    model = await models.speech(body.model)
    parameters = _parameters(body, model)
    audio = await asyncio.to_thread(read_wav, file)
    found = await model.transcribe(audio, parameters)
    return _reply(body, found, len(audio) / RATE)


def _request(form: Form) -> TranscriptionRequest:
    """Return the fields of a form that has one file.

    Raises:
        BadRequest: a field is missing, wrong, or not supported.
    """
    if form.files.keys() != {"file"}:
        raise BadRequest("file: the form needs one file of this name; add it", param="file")
    try:
        body = TranscriptionRequest.model_validate(form.fields)
    except ValidationError as error:
        raise rejection(error.errors(), form.fields) from None
    if _TIMES in form.fields and body.response_format != "verbose_json":
        raise BadRequest(f"{_TIMES}: needs response_format; set it to verbose_json", param=_TIMES)
    return body


def _parameters(body: TranscriptionRequest, model: ServedSpeechModel) -> dict[str, Any]:
    """Return the parameters of a generation.

    Raises:
        BadRequest: the model has no timestamps of words, or does not know the language.
    """
    words = _WORD in body.granularities
    if words and not model.times_words:
        raise BadRequest(
            f"{_TIMES}: {model.name} is loaded without times of words; leave out word, or start "
            "the server with -c word_timestamps=true",
            param=_TIMES,
        )
    values = {
        "language": model.language_of(body.language),
        "initial_prompt": body.prompt,
        "return_timestamps": body.response_format in _TIMED and _SEGMENT in body.granularities,
        "word_timestamps": words,
    }
    if body.temperature:
        drawn = {"do_sample": True, "temperature": body.temperature}
        values |= drawn | {"rng_seed": secrets.randbits(32)}
    return values


def _segments(found: WhisperDecodedResults, seconds: float) -> list[Segment]:
    """Return the segments; one that is open ends with the audio."""
    return [
        Segment(
            id=number,
            start=one.start_ts,
            end=one.end_ts if one.end_ts >= 0 else max(seconds, one.start_ts),
            text=one.text,
        )
        for number, one in enumerate(found.chunks or ())
    ]


_TEXTS: dict[str, Callable[[str, Sequence[Segment]], str]] = {
    "text": lambda text, _: f"{text}\n",
    "srt": lambda _, segments: srt(segments),
    "vtt": lambda _, segments: vtt(segments),
}
"""Formats that are no JSON."""


def _reply(body: TranscriptionRequest, found: WhisperDecodedResults, seconds: float) -> Response:
    text, segments = found.texts[0].strip(), _segments(found, seconds)
    if body.response_format in _TEXTS:
        return Response(_TEXTS[body.response_format](text, segments), media_type="text/plain")
    reply = Transcription(text=text, usage=AudioUsage(type="duration", seconds=seconds))
    if body.response_format == "verbose_json":
        reply.task, reply.language, reply.duration = "transcribe", found.language, seconds
        if found.chunks is not None:
            reply.segments = segments
        if found.words is not None:
            reply.words = [
                Word(word=one.word.strip(), start=one.start_ts, end=one.end_ts)
                for one in found.words
            ]
    return Response(reply.json_text(), media_type="application/json")
