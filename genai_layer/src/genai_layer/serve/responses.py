"""Errors as responses."""

from __future__ import annotations

from starlette.responses import JSONResponse

from genai_layer.serve.errors import ServeError


def error_response(error: ServeError) -> JSONResponse:
    """Return the response of an error: its status, headers, and OpenAI's error JSON."""
    return JSONResponse(error.body(), error.status, error.headers)
