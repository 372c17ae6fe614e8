"""Application: middleware, routes, and errors as responses.

Some routes are for those who operate the server: health, readiness, metrics.
"""

from __future__ import annotations

import logging

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Scope

from genai_layer import __version__
from genai_layer.errors import GenAIError
from genai_layer.serve import anthropic, observe, openai, page, request_id
from genai_layer.serve.access import Access
from genai_layer.serve.connections import HEALTH, check_room
from genai_layer.serve.engine.activity import Commons
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.errors import ServeError, UnknownRoute, as_serve_error, error_response
from genai_layer.serve.hosts import Hosts
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.middleware import Exchange
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.streams import REPLY_ID
from genai_layer.serve.openai.validation import describe, rejection
from genai_layer.serve.targets import OriginForm

_log = logging.getLogger(__name__)

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus's text format."""


def _operation_routes(models: ModelRegistry, metrics: Metrics) -> APIRouter:
    """Return the routes.

    Args:
        models: the server's.
        metrics: the server's.
    """
    routes = APIRouter(tags=["operation"])

    @routes.get(HEALTH)
    async def health() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction] (a route)
        """Answer as long as the process serves."""
        return {"status": "ok"}

    @routes.get("/ready", responses={503: {"description": "no model is loaded, or shutting down"}})
    async def ready() -> JSONResponse:  # pyright: ignore[reportUnusedFunction] (a route)
        """Answer 200 if requests are accepted, else 503."""
        status, word = (200, "ready") if models.ready else (503, "not ready")
        return JSONResponse({"status": word}, status)

    @routes.get("/metrics", response_class=Response)
    async def expose() -> Response:  # pyright: ignore[reportUnusedFunction] (a route)
        """Return the metrics in Prometheus's text format."""
        _note_queues(models, metrics)
        return Response(metrics.text(), media_type=_FORMAT)

    return routes


def _note_queues(models: ModelRegistry, metrics: Metrics) -> None:
    """Set the gauges of all models; a model that is not loaded has no requests."""
    for card in models.names():
        for gauge in (metrics.running, metrics.waiting, metrics.cache_usage):
            gauge.labels(card.name).set(0)
    for model in models.loaded:
        metrics.running.labels(model.name).set(model.running)
        metrics.waiting.labels(model.name).set(model.queue)
        if isinstance(model, ServedTextModel) and model.running:
            usage = model.pipeline.get_metrics().cache_usage / 100
            metrics.cache_usage.labels(model.name).set(usage)


def create_app(
    models: ModelRegistry,
    commons: Commons,
    access: Access | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        models: the server's models.
        commons: parts of the server that all models share.
        access: rules by which requests are admitted; the default is the loopback interface's.
    """
    access = access or Access(Hosts())
    app = FastAPI(
        title="npu-serve",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a path is right or wrong, as at OpenAI
    )
    app.include_router(_operation_routes(models, commons.metrics))
    app.include_router(openai.router(models, commons.limits))
    app.include_router(observe.router(models))
    app.include_router(page.router())
    describe(app)
    app.add_exception_handler(GenAIError, _on_genai_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_defect)

    def admit(scope: Scope) -> None:
        check_room(scope)
        access.check(scope)

    # The last one added is the outermost: responses of all others get its headers.
    app.add_middleware(
        Exchange,
        limits=commons.limits,
        admit=admit,
        answered=lambda status: commons.metrics.responses.labels(str(status)).inc(),
    )
    anthropic.open_door(app, models)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=[request_id.HEADER, REPLY_ID],
        )
    app.add_middleware(request_id.RequestId)
    app.add_middleware(OriginForm)
    return app


async def _on_genai_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, GenAIError)  # registered for these
    return error_response(as_serve_error(error))


async def _on_invalid_request(_: Request, error: Exception) -> Response:
    """Report a field that does not fit the description of the endpoint."""
    assert isinstance(error, RequestValidationError)  # registered for these
    return error_response(rejection(error.errors(), error.body))


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Report a route that does not exist, or a method that it does not have."""
    assert isinstance(error, HTTPException)  # registered for these
    where = f"{request.method} {request.url.path}: {error.detail}; see /openapi.json"
    found = UnknownRoute(where, headers=error.headers)
    found.status = error.status_code
    return error_response(found)


async def _on_defect(request: Request, error: Exception) -> Response:
    """Report a defect of the server without its details; the log has them.

    This response passes no middleware, so its id is set here.
    """
    name = request.state.request_id
    _log.error("%s %s failed: %s", request.method, request.url.path, name, exc_info=error)
    headers = {request_id.HEADER: name}
    return error_response(ServeError("the server failed; its log has the reason", headers=headers))
