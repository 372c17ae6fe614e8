"""Routes that show what the stack does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import NotLoaded, NotObservable
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.observe.schema import Plan, State
from genai_layer.serve.observe.view import Views
from genai_layer.serve.openai.schemas.errors import ErrorReply

LONGEST = 1 << 18
"""Limit of the lengths of a plan, in tokens."""

_INTERVAL = 0.05
"""Seconds between two events, at least."""
_IDLE = 40
"""Intervals without a change after which the state is sent again."""

_STATUSES = {
    400: "A parameter is missing or wrong, or the model is of another kind",
    401: "The API key is missing or wrong",
    404: "The server has no model of this name",
    408: "The body did not arrive in time",
    409: "The model is not loaded, or not observable",
    413: "The body is too large",
    421: "The header Host is no name of the server",
    503: "The server is shutting down, or has no room",
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": text} for status, text in _STATUSES.items()
}

Name = Annotated[
    str | None, Query(alias="model", description="Language model; the first one if left out.")
]
Length = Annotated[int | None, Query(ge=1, le=LONGEST)]


def router(models: ModelRegistry) -> APIRouter:
    """Return the routes.

    Args:
        models: the server's.
    """
    routes = APIRouter(prefix="/npu", tags=["observation"], responses=_ERRORS)
    views = Views()

    @routes.get("/state", response_model=State)
    async def state(name: Name = None) -> Response:  # pyright: ignore[reportUnusedFunction] (a route)
        """Return the state of a loaded language model."""
        model = _loaded(models, name or _default_name(models))
        return Response(await views.json(model), media_type="application/json")

    @routes.get(
        "/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def events(name: Name = None) -> StreamingResponse:  # pyright: ignore[reportUnusedFunction] (a route)
        """Stream the state as events ``state``: after each change, and every two seconds.

        While the model is being loaded, the stream waits, after an event ``loading``.
        """
        chosen = name or _default_name(models)
        if not models.loads_text(chosen):
            _loaded(models, chosen)  # rejected before the stream begins
        stream = _events(models, chosen, views)
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    @routes.get("/plan")
    async def plan(  # pyright: ignore[reportUnusedFunction] (a route)
        prompt_tokens: Annotated[int, Query(ge=1, le=LONGEST)],
        name: Name = None,
        max_prompt_len: Length = None,
        min_response_len: Length = None,
    ) -> Plan:
        """Return what would run for a prompt of a new conversation, with these or other lengths."""
        model = _loaded(models, name or _default_name(models))
        observer = model.pipeline.get_observer()
        found = observer and observer.plan(prompt_tokens, max_prompt_len, min_response_len)
        if found is None:
            raise NotObservable(
                f"model {model.name!r}: device {model.device} does not plan prompts; serve the "
                "model on NPU",
                param="model",
            )
        return Plan.model_validate(found)

    return routes


def _default_name(models: ModelRegistry) -> str:
    """Return the name of the model to observe: the first loaded language model, else the first.

    Raises:
        NotLoaded: the server has no language model.
    """
    texts = [card for card in models.names() if card.kind == "text"]
    if not texts:
        raise NotLoaded("the server has no language model to observe; start it with one")
    return next((card.name for card in texts if card.loaded), texts[0].name)


def _loaded(models: ModelRegistry, name: str) -> ServedTextModel:
    """Return a loaded language model.

    Raises:
        UnknownModel, WrongKind: see ``ModelRegistry.loaded_text``.
        NotLoaded: the model is not loaded.
    """
    model = models.loaded_text(name)
    if model is None and models.loads_text(name):
        raise NotLoaded(f"model {name!r}: is being loaded; try again later", param="model")
    if model is None:
        raise NotLoaded(
            f"model {name!r}: not loaded; send it a request, which loads it", param="model"
        )
    return model


async def _events(models: ModelRegistry, name: str, views: Views) -> AsyncIterator[str]:
    """Yield the events until the model is unloaded, or the server shuts down.

    Between events, nothing keeps the model loaded.
    """
    if models.loads_text(name):
        yield "event: loading\ndata: {}\n\n"
    while models.loads_text(name):
        await asyncio.sleep(_INTERVAL)
    while models.ready and (model := models.loaded_text(name)) is not None:
        changes = model.changes
        yield f"event: state\ndata: {await views.json(model)}\n\n"
        del model
        await _change(models, name, changes)


async def _change(models: ModelRegistry, name: str, changes: int) -> None:
    """Wait until a model changes, for two seconds at most."""
    for _ in range(_IDLE):
        await asyncio.sleep(_INTERVAL)
        model = models.loaded_text(name)
        if not models.ready or model is None or model.changes != changes:
            return
