"""Description of the endpoints in OpenAPI."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

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
