"""LiteLLM, as a client of an OpenAI server and of vLLM."""

from __future__ import annotations

import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the internet for prices

import litellm

CLIENT = DISTRIBUTION = "litellm"
QUESTION: Any = [{"role": "user", "content": "How warm is it in Oslo?"}]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
TOOL: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather.", "parameters": PARAMETERS},
}


def _complete(base_url: str, provider: str = "openai", **values: Any) -> Any:
    given: Any = {"messages": QUESTION, **values}
    return litellm.completion(
        model=f"{provider}/toy", api_base=base_url, api_key="none", max_retries=0, **given
    )


def _chat(base_url: str) -> None:
    _complete(base_url, max_tokens=8, temperature=0.5, stop=["a", "b"], user="me")
    list(_complete(base_url, stream=True, stream_options={"include_usage": True}))
    _complete(base_url, logit_bias={"10": 5}, logprobs=True, top_logprobs=2, seed=1)


def _vllm(base_url: str) -> None:
    _complete(base_url, "hosted_vllm", top_k=5, min_p=0.1, repetition_penalty=1.1)
    _complete(
        base_url,
        "hosted_vllm",
        reasoning_effort="low",
        extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    )
    thought = {"role": "assistant", "content": "Cold.", "reasoning_content": "It is winter."}
    _complete(base_url, "hosted_vllm", messages=[*QUESTION, thought, *QUESTION])


def _anthropic(base_url: str) -> None:
    """Messages as for Anthropic's models, or with their answers."""
    text = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    _complete(base_url, messages=[{"role": "system", "content": [text]}, *QUESTION])
    thought = {"type": "thinking", "thinking": "It is winter.", "signature": "a"}
    answer = {"role": "assistant", "content": "Cold.", "reasoning_content": "It is winter."}
    past = [*QUESTION, {**answer, "thinking_blocks": [thought]}]
    _complete(base_url, messages=[*past, *QUESTION])


def _tools(base_url: str) -> None:
    message = _complete(base_url, tools=[TOOL], tool_choice="auto").choices[0].message
    (call,) = message.tool_calls
    result = {
        "tool_call_id": call.id,
        "role": "tool",
        "name": call.function.name,
        "content": "7 degrees",
    }
    _complete(base_url, messages=[*QUESTION, message, result], tools=[TOOL])


def _format(base_url: str) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": PARAMETERS}}
    _complete(base_url, response_format=form)
    _complete(base_url, response_format={"type": "json_object"})


def _completions(base_url: str) -> None:
    litellm.text_completion(
        model="text-completion-openai/toy",
        prompt="ab",
        api_base=base_url,
        api_key="none",
        best_of=1,
        max_tokens=4,
    )


def _responses(base_url: str) -> None:
    values: Any = {"api_base": base_url, "api_key": "none", "max_retries": 0}
    litellm.responses(model="openai/toy", input="How warm is it?", **values)


def _embeddings(base_url: str) -> None:
    litellm.embedding(model="openai/embed", input=["a", "b"], api_base=base_url, api_key="none")


CASES = {
    "chat": _chat,
    "vllm": _vllm,
    "anthropic": _anthropic,
    "tools": _tools,
    "format": _format,
    "completions": _completions,
    "responses": _responses,
    "embeddings": _embeddings,
}
