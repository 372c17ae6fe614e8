"""OpenAI's agents, over both endpoints: functions beside the format of the answer, and handoffs."""

from __future__ import annotations

import asyncio

import agents
from agents.models.interface import Model
from openai import AsyncOpenAI
from pydantic import BaseModel

CLIENT = DISTRIBUTION = "openai-agents"


class Report(BaseModel):
    """Weather in a city."""

    city: str
    degrees: int


@agents.function_tool
def thermometer(city: str) -> str:
    """Return the temperature in a city."""
    return f"{city}: 7 degrees"


def _client(base_url: str) -> AsyncOpenAI:
    agents.set_tracing_disabled(True)
    return AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)


def _run(model: Model) -> None:
    agent = agents.Agent(
        name="weather",
        instructions="Be short.",
        model=model,
        tools=[thermometer],
        output_type=Report,
    )
    result = agents.Runner.run(agent, "How warm is it in Oslo?", max_turns=3)
    assert isinstance(asyncio.run(result).final_output, Report)


def _chat(base_url: str) -> None:
    _run(agents.OpenAIChatCompletionsModel("toy", _client(base_url)))


def _responses(base_url: str) -> None:
    _run(agents.OpenAIResponsesModel("toy", _client(base_url)))


def _handoff(base_url: str) -> None:
    model = agents.OpenAIResponsesModel("toy", _client(base_url))
    expert = agents.Agent(name="expert", model=model)
    settings = agents.ModelSettings(tool_choice="transfer_to_expert", parallel_tool_calls=False)
    agent = agents.Agent(name="first", model=model, handoffs=[expert], model_settings=settings)

    async def run() -> None:
        streamed = agents.Runner.run_streamed(agent, "How warm is it in Oslo?", max_turns=3)
        async for _ in streamed.stream_events():
            pass

    asyncio.run(run())


CASES = {"chat": _chat, "responses": _responses, "handoff": _handoff}
