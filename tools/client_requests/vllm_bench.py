"""``vllm bench serve``: its payloads, written here from its public source.

vllm is too large to install for a recording. The fields, their order and their values are those of
vllm/benchmarks/lib/endpoint_request_func.py (async_request_openai_completions and
async_request_openai_chat_completions), with --ignore-eos, and sampling options as ``extra_body``.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

CLIENT = "vllm bench serve"
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
SAMPLING = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0}


def version() -> str:
    """Return the origin of the payloads."""
    return "(payloads from its public source; it did not run)"


def _post(base_url: str, path: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json", "x-request-id": "bench-0"}
    with urlopen(Request(f"{base_url}{path}", json.dumps(body).encode(), headers)) as reply:
        reply.read()


def _completions(base_url: str) -> None:
    body = {
        "model": "toy",
        "prompt": "How warm is it in Oslo?",
        "repetition_penalty": 1.0,
        "max_tokens": 8,
        "logprobs": None,
        **STREAM,
    }
    _post(base_url, "/completions", body)
    _post(base_url, "/completions", body | {"ignore_eos": True, **SAMPLING})


def _chat(base_url: str) -> None:
    content = [{"type": "text", "text": "How warm is it in Oslo?"}]
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": content}],
        "max_completion_tokens": 8,
        **STREAM,
    }
    _post(base_url, "/chat/completions", body)
    _post(base_url, "/chat/completions", body | {"ignore_eos": True, **SAMPLING})


CASES = {"completions": _completions, "chat": _chat}
