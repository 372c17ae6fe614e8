"""Anthropic's own client, and requests of the form that Claude Code sends with it."""

from __future__ import annotations

from typing import Any

import anthropic

from client_requests.replies import TEXT, as_events, as_json, least

CLIENT = DISTRIBUTION = "anthropic"
QUESTION: Any = [{"role": "user", "content": "How warm is it in Oslo?"}]
WEATHER: Any = {
    "name": "weather",
    "description": "Weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
CACHED: Any = {"type": "ephemeral"}


def _client(base_url: str) -> anthropic.Anthropic:
    address = base_url.removesuffix("/v1")
    return anthropic.Anthropic(base_url=address, api_key="none", max_retries=0)


def _messages(base_url: str) -> None:
    create = _client(base_url).messages.create
    create(model="toy", max_tokens=8, messages=QUESTION, system="Be brief.")
    create(
        model="toy",
        max_tokens=8,
        messages=[{"role": "user", "content": [{"type": "text", "text": "How warm is it?"}]}],
        metadata={"user_id": "someone"},
        service_tier="auto",
        stop_sequences=["x", "y", "z", "7", "8"],
        extra_body={"temperature": 1.0, "top_k": 5, "top_p": 0.9},
    )


def _stream(base_url: str) -> None:
    with _client(base_url).messages.stream(model="toy", max_tokens=8, messages=QUESTION) as stream:
        stream.get_final_message()


def _tools(base_url: str) -> None:
    create = _client(base_url).messages.create
    values: Any = {"model": "toy", "max_tokens": 64, "tools": [WEATHER]}
    parallel: Any = {"type": "auto", "disable_parallel_tool_use": True}
    message = create(**values, messages=QUESTION, tool_choice=parallel)
    results: Any = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "7", "is_error": False}
        for block in message.content
        if block.type == "tool_use"
    ]
    asked = [*QUESTION, message.to_param(), {"role": "user", "content": results}]
    create(**values, messages=asked)
    choices: Any = [{"type": "any"}, {"type": "tool", "name": "weather"}, {"type": "none"}]
    for choice in choices:
        create(**values, messages=QUESTION, tool_choice=choice)


@anthropic.beta_tool
def _weather(city: str) -> str:
    """Return the weather in a city."""
    return f"{city}: 7"


def _runner(base_url: str) -> None:
    runner = _client(base_url).beta.messages.tool_runner
    runner(
        model="toy", max_tokens=64, messages=QUESTION, tools=[_weather], thread=False
    ).until_done()


def _agent(base_url: str) -> None:
    """Send a turn of the form that Claude Code sends: beta routes, cached blocks, thinking."""
    client = _client(base_url).beta.messages
    values: Any = {
        "model": "toy",
        "system": [
            {"type": "text", "text": "You work in a terminal.", "cache_control": CACHED},
            {"type": "text", "text": "Be brief.", "cache_control": CACHED | {"ttl": "1h"}},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>Be kind.</system-reminder>"},
                    {"type": "text", "text": "How warm is it?", "cache_control": CACHED},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I need a city.", "signature": "c2lnbmVk"},
                    {"type": "redacted_thinking", "data": "c2VjcmV0"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no city"}],
                        "cache_control": CACHED,
                    },
                    {"type": "text", "text": "In Oslo."},
                ],
            },
        ],
        "tools": [WEATHER | {"cache_control": CACHED}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "betas": ["interleaved-thinking-2025-05-14", "context-management-2025-06-27"],
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    }
    client.count_tokens(**values)
    extra: Any = {"metadata": {"user_id": "someone"}, "extra_body": {"temperature": 1}}
    with client.stream(**values, **extra, max_tokens=2048) as stream:
        stream.get_final_message()


def _reply(body: dict[str, Any]) -> tuple[bytes, str]:
    """Reply of /v1/messages: a call of the first tool that the first message offers, or a text."""
    block: dict[str, Any] = {"type": "text", "text": TEXT}
    tools = body.get("tools") if len(body["messages"]) == 1 else None
    if tools:
        arguments = least(tools[0]["input_schema"])
        block = {"type": "tool_use", "id": "toolu_1", "name": tools[0]["name"], "input": arguments}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": "tool_use" if tools else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }
    return as_events(_events(message), typed=True) if body.get("stream") else as_json(message)


def _events(message: dict[str, Any]) -> list[Any]:
    """Return the events of a streamed text."""
    (block,) = message["content"]
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    delta = {"type": "text_delta", "text": block["text"]}
    return [
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block | {"text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


REPLIES = {
    "/v1/messages": _reply,
    "/v1/messages/count_tokens": lambda _: as_json({"input_tokens": 9}),
}
CASES = {
    "messages": _messages,
    "stream": _stream,
    "tools": _tools,
    "runner": _runner,
    "agent": _agent,
}
