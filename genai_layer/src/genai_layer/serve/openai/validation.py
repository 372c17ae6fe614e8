"""Validation: errors of a body's fields in the server's form; its place in OpenAPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from fastapi import FastAPI

from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.schemas.base import NO_TEXT

_TEXTS = {
    "none_required": "is not supported; leave it out",
    "extra_forbidden": "is unknown; remove it",
    "missing": "is missing; add it",
    "model_type": "should be an object",
    NO_TEXT: "has a lone surrogate, which is no character; remove it",
    "json_invalid": "the body is no JSON; send a JSON object",
}
"""Our texts instead of pydantic's, by its types of errors."""


def rejection(errors: Sequence[Any], body: object) -> BadRequest:
    """Return the server's error for errors of pydantic's validation.

    Args:
        errors: their descriptions.
        body: the body that was rejected; bytes if its content type is not JSON's.
    """
    if isinstance(body, bytes):
        return BadRequest("Content-Type: the body is not sent as JSON; send application/json")
    chosen = max(errors, key=lambda one: _weight(one, body))
    kind, path = chosen["type"], _path(chosen, body)
    text = _TEXTS.get(kind) or chosen["msg"].removeprefix("Input ")
    if kind == "json_invalid" or not path:
        return BadRequest(f"body: {text}")
    name = ".".join(map(str, path))
    return BadRequest(f"{name}: {text}", param=name)


def _weight(error: Any, body: object) -> tuple[int, bool]:
    """Return the rank of an error: the highest belongs to the type that the value resembles."""
    return len(_path(error, body)), not error["type"].endswith("_type")


def _path(error: Any, body: object) -> list[int | str]:
    """Return the fields that lead to an error; pydantic also names types on the way."""
    part, *steps = error["loc"]
    if part != "body":
        return [part, *steps]
    path: list[int | str] = []
    for step in steps:
        found: Any = body
        if isinstance(found, dict) and step in found:
            body = cast(dict[Any, Any], found)[step]
        elif isinstance(found, list) and isinstance(step, int):
            body = cast(list[Any], found)[step]
        else:
            continue
        path.append(step)
    return [*path, *steps[-1:]] if error["type"] == "missing" else path


_VALIDATION = "422"
"""Status that FastAPI describes for each body; the server answers 400, as OpenAI does."""


def describe(app: FastAPI) -> None:
    """Leave out of an app's description the status that the server never sends."""
    complete = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _prune(complete())
        return complete()

    app.openapi = openapi


def _prune(schema: dict[str, Any]) -> None:
    for path in schema["paths"].values():
        for operation in path.values():
            operation["responses"].pop(_VALIDATION, None)
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
