"""Routes for those who operate the server: health, readiness, metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.registry import ModelRegistry

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus's text format."""


def router(models: ModelRegistry, metrics: Metrics) -> APIRouter:
    """Return the routes.

    Args:
        models: the server's.
        metrics: the server's.
    """
    routes = APIRouter(tags=["operation"])

    @routes.get("/health")
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
