"""pydantic-ai, by chats and by responses."""

from __future__ import annotations

import asyncio
from typing import Any

import pydantic_ai
from pydantic import BaseModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

CLIENT, DISTRIBUTION = "pydantic-ai", "pydantic-ai-slim"


class Weather(BaseModel):
    """Weather in a city."""

    city: str
    degrees: int


def _agent(base_url: str, kind: Any, **values: Any) -> Any:
    model = kind("toy", provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent = pydantic_ai.Agent(model, instructions="Be short.", retries=0, **values)

    @agent.tool_plain
    def temperature(city: str) -> float:
        """Return the temperature in a city."""
        return 7.5 if city else 0.0

    return agent


def _chat(base_url: str) -> None:
    _agent(base_url, OpenAIChatModel).run_sync("How warm is it in Oslo?")


def _output(base_url: str) -> None:
    _agent(base_url, OpenAIChatModel, output_type=Weather).run_sync("How warm is it in Oslo?")


def _native(base_url: str) -> None:
    kind = pydantic_ai.NativeOutput(Weather)
    _agent(base_url, OpenAIChatModel, output_type=kind).run_sync("How warm is it in Oslo?")


def _settings(base_url: str) -> None:
    settings: Any = {
        "max_tokens": 8,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 1,
        "presence_penalty": 0.5,
        "logit_bias": {"10": 5},
        "stop_sequences": ["a", "b", "c", "d", "e"],
        "openai_reasoning_effort": "low",
    }
    agent = _agent(base_url, OpenAIChatModel)
    agent.run_sync("How warm is it in Oslo?", model_settings=settings)


def _stream(base_url: str) -> None:
    async def run() -> None:
        agent = _agent(base_url, OpenAIChatModel)
        async with agent.run_stream("How warm is it in Oslo?") as result:
            await result.get_output()

    asyncio.run(run())


def _responses(base_url: str) -> None:
    _agent(base_url, OpenAIResponsesModel).run_sync("How warm is it in Oslo?")


CASES = {
    "chat": _chat,
    "output": _output,
    "native": _native,
    "settings": _settings,
    "stream": _stream,
    "responses": _responses,
}
