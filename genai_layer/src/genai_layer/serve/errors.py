"""Errors of the server, and their form in HTTP: a status and OpenAI's error JSON.

ServeError (GenAIError)
├── BadRequest        400  a parameter is missing, wrong or not supported
│   ├── WrongKind          the model is of another kind than the endpoint
│   ├── TooLong            prompt and answer exceed the model's context
│   ├── NeverFits          the model has more weights than the server may load
│   └── BadHttp            the bytes of a connection are no HTTP
├── Unauthorized      401  the API key is missing or wrong
├── ForeignOrigin     403  a page of another origin sends a request that changes something
├── UnknownModel      404  the server has no model of this name
├── UnknownRoute      404  the route does not exist, or does not have the method (405)
├── HeadTimeout       408  the head of a request did not arrive in time
├── BodyTimeout       408  the body did not arrive in time
├── NotLoaded         409  the model is not loaded, so there is nothing to observe
├── NotObservable     409  the model's runtime does not show what it does
├── TooLarge          413  the body is too large
├── UnknownHost       421  the request names another host
├── QueueFull         429  too many requests wait
├── SlowReader        503  the client reads more slowly than the model generates
├── ConnectionsFull   503  the server has no room for a further connection
├── NoRoom            503  the model does not fit beside the models in use
├── Unusable          503  the model cannot be loaded
├── ShuttingDown      503  the server is shutting down
└── TimedOut          504  the request exceeded its time limit

Source: OpenAI's error format, docs/reference/serving.md#errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from starlette.responses import JSONResponse

from genai_layer.errors import GenAIError, GenAIInputError, GenAIUsageError

_INVALID = "invalid_request_error"
_NO_RETRY = {"x-should-retry": "false"}
"""Header by which OpenAI's clients do not repeat a request."""


_MOST_CHARACTERS = 2000
"""Characters of an error's text, which may repeat a client's."""


def _shortened(text: str) -> str:
    """Return the beginning and the end of a text that is too long."""
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:half]} … {text[-half:]}"


class ServeError(GenAIError):
    """Base class of the server's errors.

    Args:
        message: object – problem – remedy.
        param: name of the request's field that is wrong.
        headers: further headers of the response.
    """

    status: int = 500
    """HTTP status."""
    type: ClassVar[str] = "server_error"
    """OpenAI's type of the error."""
    code: ClassVar[str | None] = None
    """OpenAI's code of the error."""

    def __init_subclass__(
        cls, *, status: int | None = None, type: str | None = None, code: str | None = None
    ) -> None:
        """Set what differs from the base class."""
        super().__init_subclass__()
        cls.status, cls.type = status or cls.status, type or cls.type
        cls.code = code or cls.code

    def __init__(
        self, message: str, *, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(_shortened(message))
        self.param = param and _shortened(param)
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Return OpenAI's error JSON; lone surrogates of a request that it quotes are escaped."""
        error = {
            "message": _escaped(str(self)),
            "type": self.type,
            "param": None if self.param is None else _escaped(self.param),
            "code": self.code,
        }
        return {"error": error}


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


class BadRequest(ServeError, status=400, type=_INVALID):
    """A parameter is missing, wrong or not supported."""


class WrongKind(BadRequest, code="wrong_model_kind"):
    """The model is of another kind than the endpoint."""


class TooLong(BadRequest, code="context_length_exceeded"):
    """The prompt, or prompt and answer, exceed the model's context."""


class NeverFits(BadRequest, code="model_too_large"):
    """The model has more bytes of weights than the server may load."""


class BadHttp(BadRequest, code="malformed_http"):
    """The bytes that a client sends are no HTTP."""


class Unauthorized(ServeError, status=401, type=_INVALID, code="invalid_api_key"):
    """The API key is missing or wrong."""


class ForeignOrigin(ServeError, status=403, type=_INVALID, code="foreign_origin"):
    """A page of another origin sends a request that changes something."""


class UnknownHost(ServeError, status=421, type=_INVALID, code="unknown_host"):
    """The request names a host that is not the server."""


class UnknownModel(ServeError, status=404, type=_INVALID, code="model_not_found"):
    """The server has no model of this name."""


class UnknownRoute(ServeError, status=404, type=_INVALID):
    """The server has no such route, or the route does not have the method."""


class NotLoaded(ServeError, status=409, type=_INVALID, code="model_not_loaded"):
    """The model is not loaded, so there is nothing to observe."""


class NotObservable(ServeError, status=409, type=_INVALID, code="model_not_observable"):
    """The model's runtime does not show what it does."""


class HeadTimeout(ServeError, status=408, type=_INVALID, code="head_timeout"):
    """The head of a request did not arrive in time."""


class BodyTimeout(ServeError, status=408, type=_INVALID, code="body_timeout"):
    """The body of a request did not arrive in time."""


class TooLarge(ServeError, status=413, type=_INVALID, code="body_too_large"):
    """The body of a request is too large."""


class QueueFull(ServeError, status=429, type="requests", code="rate_limit_exceeded"):
    """Too many requests wait; the header Retry-After has the seconds to wait."""


class SlowReader(ServeError, status=503, code="slow_reader"):
    """The client reads more slowly than the model generates."""


class ConnectionsFull(ServeError, status=503, code="too_many_connections"):
    """The server has no room for a further connection."""


class NoRoom(ServeError, status=503, code="no_room"):
    """The model does not fit beside the models in use."""


class Unusable(ServeError, status=503, code="model_unusable"):
    """The model cannot be loaded."""

    def __init__(self, message: str) -> None:
        super().__init__(message, headers=_NO_RETRY)


class ShuttingDown(ServeError, status=503, code="shutting_down"):
    """The server is shutting down."""


class TimedOut(ServeError, status=504, code="timed_out"):
    """The request exceeded its time limit."""

    def __init__(self, message: str) -> None:
        super().__init__(message, headers=_NO_RETRY)


def shutting_down() -> ShuttingDown:
    """Return the error of a request that the server no longer accepts or completes."""
    return ShuttingDown("the server is shutting down; send the request to another one, or later")


def as_serve_error(error: GenAIError) -> ServeError:
    """Return the server's error for an error of the pipelines below.

    Errors of the call and of its inputs are the client's; others are the server's.
    """
    if isinstance(error, ServeError):
        return error
    if isinstance(error, GenAIUsageError | GenAIInputError):
        return BadRequest(str(error))
    return ServeError(str(error))


def error_response(error: ServeError) -> JSONResponse:
    """Return the response of an error: its status, headers, and OpenAI's error JSON."""
    return JSONResponse(error.body(), error.status, error.headers)
