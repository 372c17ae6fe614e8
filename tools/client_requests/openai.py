"""OpenAI's own client."""

from __future__ import annotations

from typing import Any

import openai
from pydantic import BaseModel

CLIENT = DISTRIBUTION = "openai"
QUESTION: Any = [{"role": "user", "content": "How warm is it in Oslo?"}]


class Weather(BaseModel):
    """Weather in a city."""

    city: str
    degrees: int


def _client(base_url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)


def _chat(base_url: str) -> None:
    create = _client(base_url).chat.completions.create
    create(model="toy", messages=QUESTION, max_completion_tokens=8)
    create(
        model="toy",
        messages=QUESTION,
        max_tokens=8,
        logit_bias={"10": 5},
        logprobs=True,
        top_logprobs=2,
        reasoning_effort="low",
        stop=["x", "y"],
        seed=1,
        n=2,
        extra_headers={"x-request-id": "chat-2"},
        extra_body={"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1},
    )


def _stream(base_url: str) -> None:
    values: Any = {"model": "toy", "messages": QUESTION, "max_tokens": 8}
    options: Any = {"include_usage": True}
    list(_client(base_url).chat.completions.create(**values, stream=True, stream_options=options))


def _parse(base_url: str) -> None:
    client = _client(base_url)
    client.chat.completions.parse(model="toy", messages=QUESTION, response_format=Weather)
    client.responses.parse(model="toy", input="How warm is it?", text_format=Weather)


def _tools(base_url: str) -> None:
    create = _client(base_url).chat.completions.create
    tools = [openai.pydantic_function_tool(Weather, name="note")]
    message = create(model="toy", messages=QUESTION, tools=tools).choices[0].message
    assert message.tool_calls
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "noted"}
    create(model="toy", messages=[*QUESTION, message, result], tools=tools)


def _completions(base_url: str) -> None:
    create = _client(base_url).completions.create
    create(model="toy", prompt="ab", best_of=1, max_tokens=4)
    create(model="toy", prompt=["ab", "c"], echo=True, logprobs=1, max_tokens=1)


def _responses(base_url: str) -> None:
    create = _client(base_url).responses.create
    create(model="toy", input="How warm is it?", max_output_tokens=8)
    create(
        model="toy",
        input=[{"role": "user", "content": "How warm is it?"}],
        include=["reasoning.encrypted_content", "message.output_text.logprobs"],
        reasoning={"effort": "low", "summary": "auto"},
        store=False,
    )
    list(create(model="toy", input="How warm is it?", stream=True))


def _models(base_url: str) -> None:
    _client(base_url).models.list()


def _embeddings(base_url: str) -> None:
    _client(base_url).embeddings.create(model="embed", input=["a", "b"])


CASES = {
    "chat": _chat,
    "stream": _stream,
    "parse": _parse,
    "tools": _tools,
    "completions": _completions,
    "responses": _responses,
    "models": _models,
    "embeddings": _embeddings,
}
