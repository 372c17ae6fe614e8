"""Bodies of /v1/models."""

from __future__ import annotations

from typing import Literal

from genai_layer.serve.openai.schemas.base import Reply


class Model(Reply):
    """Model of the server."""

    id: str
    object: Literal["model"]
    created: int
    """Time of the model's files, in Unix seconds."""
    owned_by: str
    kind: Literal["text", "embedding", "rerank"]
    """Ours: the endpoints that the model serves."""
    loaded: bool
    """Ours: False if the next request loads the model."""


class ModelList(Reply):
    """Models of the server."""

    object: Literal["list"]
    data: list[Model]
