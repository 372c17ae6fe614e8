"""/v1/models: models of the server, and the bodies of the replies."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from genai_layer.serve.engine.contract import Kind, ModelCard
from genai_layer.serve.errors import UnknownModel
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.schemas.base import Reply
from genai_layer.serve.openai.schemas.errors import ERRORS_OF_LISTS


class Model(Reply):
    """Model of the server."""

    id: str
    object: Literal["model"]
    created: int
    """Time of the model's files, in Unix seconds."""
    owned_by: str
    kind: Kind
    """Ours: the endpoints that the model serves."""
    loaded: bool
    """Ours: False if the next request loads the model."""
    max_model_len: int | None
    """vLLM's: tokens of prompt and answer together; null if unlimited, or not loaded."""


class ModelList(Reply):
    """Models of the server."""

    object: Literal["list"]
    data: list[Model]


def models_router(models: ModelRegistry) -> APIRouter:
    """Return the routes that describe models."""
    router = APIRouter(responses=ERRORS_OF_LISTS)

    @router.get("/v1/models")
    async def list_models() -> ModelList:
        """Return the models."""
        return ModelList(object="list", data=[_model(card) for card in models.names()])

    @router.get("/v1/models/{name:path}")
    async def retrieve_model(name: str) -> Model:
        """Return a model."""
        for card in models.names():
            if card.name == name:
                return _model(card)
        known = ", ".join(card.name for card in models.names())
        raise UnknownModel(
            f"model {name!r}: the server has no such model; use one of {known}", param="model"
        )

    return router


def _model(card: ModelCard) -> Model:
    return Model(
        id=card.name,
        object="model",
        created=card.created,
        owned_by="local",
        kind=card.kind,
        loaded=card.loaded,
        max_model_len=card.max_model_len,
    )
