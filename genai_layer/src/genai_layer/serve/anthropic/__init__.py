"""Door for Anthropic's clients: the Messages API over the models of the server.

messages      /v1/messages, /v1/messages/count_tokens
conversation  messages, tools and parameters in the forms of chat templates and of the engine
blocks        content of an answer as it grows, and the reader of its stop sequences
errors        Anthropic's form of errors, and of the API key
requests      bodies of requests
replies       bodies of replies, and events of streams
"""

from __future__ import annotations

from fastapi import FastAPI

from genai_layer.serve.anthropic.errors import AnthropicForm
from genai_layer.serve.anthropic.messages import messages_router
from genai_layer.serve.models.registry import ModelRegistry


def open_door(app: FastAPI, models: ModelRegistry) -> None:
    """Add the routes to an application, and the middleware of their keys and errors.

    Args:
        app: an application that has the middleware whose errors are to have Anthropic's form.
        models: models of the server.
    """
    app.include_router(messages_router(models))
    app.add_middleware(AnthropicForm)
