"""OpenAI's endpoints, over the engine.

chat               /v1/chat/completions
completions        /v1/completions
responses          /v1/responses
texts              /v1/embeddings, /v1/rerank
audio              /v1/audio/transcriptions
models             /v1/models

bodies             bodies of requests: bounded, parsed and validated
schemas            fields of requests and replies
tools              calls of functions
formats            grammar of a requested format
turn               a model's turn in a chat: messages, the prompt, the form of the answer
template_variables variables of a chat template that a request sets
sampling           parameters of a generation
answers            answers as they grow, from generations that run side by side
output             items of a response
log_probabilities  log-probabilities in the forms of the endpoints
counts             usage; ids, times, the fingerprint
streams            server-sent events; clients that disconnect
validation         errors of a body's fields; validation in OpenAPI
"""

from __future__ import annotations

from fastapi import APIRouter

from genai_layer.serve.limits import Limits
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.openai.audio.transcriptions import audio_router
from genai_layer.serve.openai.chat import chat_router
from genai_layer.serve.openai.completions import completions_router
from genai_layer.serve.openai.models import models_router
from genai_layer.serve.openai.responses import responses_router
from genai_layer.serve.openai.texts import texts_router


def router(models: ModelRegistry, limits: Limits) -> APIRouter:
    """Return the routes under /v1.

    Args:
        models: models of the server.
        limits: limits of a request.
    """
    routes = APIRouter(tags=["OpenAI"])
    routes.include_router(models_router(models))
    routes.include_router(chat_router(models, limits))
    routes.include_router(completions_router(models, limits))
    routes.include_router(responses_router(models))
    routes.include_router(texts_router(models))
    routes.include_router(audio_router(models))
    return routes
