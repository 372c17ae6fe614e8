"""Replies of the recording server: the same text always, or calls with the least arguments.

A chat whose last message is no tool's result gets a call of the first tool that it offers, so that
clients also send the result of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Reply = Callable[[dict[str, Any]], tuple[bytes, str]]
"""Returns data and their content type, for the body of a request."""

TEXT = "It is 7."
USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}


def as_json(reply: Any) -> tuple[bytes, str]:
    """Return a reply as JSON."""
    return json.dumps(reply).encode(), "application/json"


def as_events(events: list[Any], *, typed: bool = False) -> tuple[bytes, str]:
    """Return a stream of server-sent events; typed ones have their type as a name."""
    heads = [f"event: {one['type']}\n" if typed else "" for one in events]
    texts = [f"{head}data: {json.dumps(one)}\n\n" for head, one in zip(heads, events, strict=True)]
    end = "" if typed else "data: [DONE]\n\n"
    return ("".join(texts) + end).encode(), "text/event-stream"


def least(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    """Return a small value that follows a JSON schema, as far as clients' schemas need."""
    root = schema if root is None else root
    if "$ref" in schema:
        found: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return least(found, root)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return least(schema[several][0], root)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        parts = schema.get("properties", {})
        return {name: least(parts[name], root) for name in schema.get("required", parts)}
    return {"array": [], "string": "Oslo", "integer": 7, "number": 7.5, "boolean": True}.get(kind)


def chat(body: dict[str, Any]) -> tuple[bytes, str]:
    """Reply of /v1/chat/completions."""
    message, reason = _message(body)
    head = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        return as_json(head | {"object": "chat.completion", "choices": [choice], "usage": USAGE})
    head["object"] = "chat.completion.chunk"
    for place, call in enumerate(message.get("tool_calls", ())):
        call["index"] = place
    deltas: list[tuple[Any, str | None]] = [(message, None), ({}, reason)]
    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]
    return as_events([*chunks, head | {"choices": [], "usage": USAGE}])


def _message(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the message of a chat's reply, and the reason for its end."""
    tools = [one for one in body.get("tools") or () if one["type"] == "function"]
    if tools and body["messages"][-1]["role"] != "tool" and body.get("tool_choice") != "none":
        function = tools[0]["function"]
        arguments = json.dumps(least(function.get("parameters") or {}))
        called = {"name": function["name"], "arguments": arguments}
        call = {"id": "call_1", "type": "function", "function": called}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    form = body.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema")
    text = json.dumps(least(schema)) if schema else TEXT
    return {"role": "assistant", "content": text}, "stop"


def completion(body: dict[str, Any]) -> tuple[bytes, str]:
    """Reply of /v1/completions; with log-probabilities of echoed tokens, if they are requested."""
    given = body["prompt"]
    prompts = [given] if isinstance(given, str) or isinstance(given[0], int) else given
    choices: list[dict[str, Any]] = []
    for number, prompt in enumerate(prompts):
        count = len(prompt) + 1 if body.get("echo") else 1
        scores = {
            "tokens": ["a"] * count,
            "token_logprobs": [None, *[-1.0] * (count - 1)],
            "top_logprobs": [None, *[{"a": -1.0}] * (count - 1)],
            "text_offset": list(range(count)),
        }
        wanted = scores if body.get("logprobs") is not None else None
        choices.append({"index": number, "text": TEXT, "logprobs": wanted, "finish_reason": "stop"})
    reply = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": body["model"]}
    if body.get("stream"):
        events = [reply | {"choices": choices}, reply | {"choices": [], "usage": USAGE}]
        return as_events(events)
    return as_json(reply | {"choices": choices, "usage": USAGE})


def response(body: dict[str, Any]) -> tuple[bytes, str]:
    """Reply of /v1/responses: a text, or a call of the first function."""
    item = _item(body)
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": body["model"],
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 14,
        },
    }
    if not body.get("stream"):
        return as_json(whole)
    events = [
        {"type": "response.created", "response": whole | {"output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    numbered = [one | {"sequence_number": number} for number, one in enumerate(events)]
    return as_events(numbered, typed=True)


def _item(body: dict[str, Any]) -> dict[str, Any]:
    """Return the item of a response."""
    given = body["input"]
    answered = isinstance(given, list) and given[-1].get("type") == "function_call_output"
    tools = [one for one in body.get("tools") or () if one["type"] == "function"]
    if tools and not answered:
        arguments = json.dumps(least(tools[0].get("parameters") or {}))
        call = {"call_id": "call_1", "name": tools[0]["name"], "arguments": arguments}
        return {"type": "function_call", "id": "fc_1", "status": "completed", **call}
    schema = ((body.get("text") or {}).get("format") or {}).get("schema")
    text = json.dumps(least(schema)) if schema else TEXT
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"role": "assistant", "status": "completed", "content": [part]}
    return {"type": "message", "id": "msg_1", **message}


def models(_: dict[str, Any]) -> tuple[bytes, str]:
    """Reply of /v1/models."""
    card = {"id": "toy", "object": "model", "created": 1, "owned_by": "local"}
    return as_json({"object": "list", "data": [card]})


def embeddings(body: dict[str, Any]) -> tuple[bytes, str]:
    """Reply of /v1/embeddings."""
    given = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [{"object": "embedding", "index": n, "embedding": [0.0, 1.0]} for n in range(len(given))]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return as_json({"object": "list", "data": data, "model": body["model"], "usage": usage})


REPLIES: Mapping[str, Reply] = {
    "/v1/chat/completions": chat,
    "/v1/completions": completion,
    "/v1/responses": response,
    "/v1/models": models,
    "/v1/embeddings": embeddings,
}
"""Replies by path."""
