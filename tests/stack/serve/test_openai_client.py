"""The official client, as it ships, with a real server of the demo model on the NPU."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import openai
import pytest
from pydantic import BaseModel
from tests.stack.serve.conftest import ROOT, Serve

DEMO = ROOT / "models" / "demo"
GOLDENS = ROOT / "tests" / "goldens"
RAG = json.loads((GOLDENS / "rag" / "said.json").read_text())
KEY = "secret"
QUESTION: Any = [{"role": "user", "content": "What is a KV cache?"}]
TEMPLATE = (
    "{% if tools %}<|im_start|>system\nCall <tool_call> "
    "{{ tools | map(attribute='function.name') | join }}<|im_end|>\n{% endif %}"
)
"""Begin of a chat template that teaches calls of functions."""


class Weather(BaseModel):
    """Weather in a city."""

    city: Literal["Oslo", "Bergen"]
    warm: bool


def write_text_model(restore: Callable[..., Any], name: str, target: Path) -> Path:
    """Write an encoder's folder, as the exporter does."""
    target.mkdir()
    restore(GOLDENS / "texts", name, target)
    shutil.copy(GOLDENS / "rag" / "encoder.json", target / "tokenizer.json")
    (target / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]"}))
    (target / "config.json").write_text(json.dumps({"model_type": name}))
    return target


def write_demo_with_tools(target: Path) -> Path:
    """Write the demo model with a template that passes tools to the model."""
    shutil.copytree(DEMO, target)
    path = target / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings["chat_template"] = TEMPLATE + settings["chat_template"]
    path.write_text(json.dumps(settings))
    return target


@pytest.fixture(scope="module")
def url(
    serve_demo: Serve,
    load_module: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Start a server; return its address."""
    folder = tmp_path_factory.mktemp("models")
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    bert, xlmr = (write_text_model(restore, name, folder / name) for name in ("bert", "xlmr"))
    tools = write_demo_with_tools(folder / "tools")
    options = ["--api-key", KEY, "--slots", "2", "--queue", "4", "--model", f"tools={tools}"]
    options += ["--embedding-model", f"bert={bert}", "--rerank-model", f"xlmr={xlmr}"]
    for value in ("INFERENCE_PRECISION_HINT=f32", "NPUW_LLM_PREFILL_CHUNK_SIZE=32"):
        options += ["-c", value]
    with serve_demo(*options) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as made:
        yield made


def chat(client: openai.OpenAI, **values: Any) -> Any:
    given = {"model": "demo", "messages": QUESTION, "max_tokens": 40, **values}
    return client.chat.completions.create(**given)


def test_a_chat_is_answered_as_a_whole_and_as_a_stream(client: openai.OpenAI) -> None:
    reply = chat(client, temperature=0)
    text = reply.choices[0].message.content
    assert text.startswith("The KV cache stores the key and value vectors of all earlier tokens.")
    assert reply.choices[0].finish_reason == "stop"
    *chunks, last = chat(client, temperature=0, stream=True, stream_options={"include_usage": True})
    parts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(part or "" for part in parts) == text
    assert len(parts) > 20
    assert last.usage.completion_tokens == reply.usage.completion_tokens
    assert last.usage.prompt_tokens == reply.usage.prompt_tokens


def test_seeds_repeat_texts(client: openai.OpenAI) -> None:
    values: Any = {"prompt": "NPU", "model": "demo", "max_tokens": 12, "temperature": 2.0}
    first, second, other = (
        client.completions.create(**values, seed=seed, n=3) for seed in (5, 5, 6)
    )
    texts = [choice.text for choice in first.choices]
    assert [choice.text for choice in second.choices] == texts
    assert len({*texts, *(choice.text for choice in other.choices)}) > 2
    assert [choice.text for choice in other.choices][:2] == texts[1:]  # choice i has seed + i


def test_log_probabilities_are_the_models(client: openai.OpenAI) -> None:
    tokens = chat(client, temperature=0, logprobs=True, top_logprobs=4).choices[0].logprobs.content
    assert tokens[0].token == "The"
    for token in tokens:
        values = [one.logprob for one in token.top_logprobs]
        assert values == sorted(values, reverse=True)
        assert len(values) == 4
        assert np.exp(values).sum() <= 1 + 1e-6
        assert (token.token, token.logprob) == (token.top_logprobs[0].token, values[0])


def test_an_echoed_prompt_has_the_scores_of_its_generation(client: openai.OpenAI) -> None:
    values: Any = {"model": "demo", "temperature": 0, "logprobs": 1}
    written = client.completions.create(prompt="The NPU", max_tokens=12, **values).choices[0]
    whole = "The NPU" + written.text
    echoed = client.completions.create(prompt=whole, echo=True, max_tokens=1, **values).choices[0]
    assert written.logprobs is not None
    assert echoed.logprobs is not None
    assert echoed.text.startswith(whole)
    expected = written.logprobs.token_logprobs
    found = echoed.logprobs.token_logprobs
    assert echoed.logprobs.tokens[-13:-1] == written.logprobs.tokens
    np.testing.assert_allclose(found[-13:-1], expected, atol=1e-3)
    (top,) = echoed.logprobs.top_logprobs[-2].values()
    assert found[-2] == top  # as lm-evaluation-harness finds greedy continuations


def test_a_loaded_model_states_its_length(client: openai.OpenAI) -> None:
    chat(client, max_tokens=1)
    lengths = {one.id: one.to_dict()["max_model_len"] for one in client.models.list()}
    assert (lengths["demo"], lengths["bert"]) == (128 + 512, None)


def test_a_stop_string_ends_a_text_before_it(client: openai.OpenAI) -> None:
    choice = chat(client, temperature=0, stop=[" value", "nowhere"]).choices[0]
    assert (choice.message.content, choice.finish_reason) == (
        "The KV cache stores the key and",
        "stop",
    )


def test_the_client_parses_structured_answers(client: openai.OpenAI) -> None:
    reply = client.chat.completions.parse(
        model="demo", messages=QUESTION, response_format=Weather, max_tokens=60
    )
    assert isinstance(reply.choices[0].message.parsed, Weather)
    response = client.responses.parse(
        model="demo", input="Weather?", text_format=Weather, max_output_tokens=60
    )
    assert isinstance(response.output_parsed, Weather)


def test_the_client_parses_calls_of_functions(client: openai.OpenAI) -> None:
    tools = [openai.pydantic_function_tool(Weather, name="weather")]
    values: Any = {"model": "tools", "messages": QUESTION, "tools": tools, "max_tokens": 80}
    values |= {"tool_choice": "required", "parallel_tool_calls": False}
    (choice,) = client.chat.completions.parse(**values).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, Weather)
    with client.chat.completions.stream(**values) as stream:
        final = stream.get_final_completion()
    (streamed,) = final.choices[0].message.tool_calls or ()
    assert streamed.function.arguments == call.function.arguments


def test_a_response_streams_typed_events(client: openai.OpenAI) -> None:
    with client.responses.stream(
        model="demo", input="What is a KV cache?", temperature=0, max_output_tokens=40
    ) as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert final.status == "completed"
    assert "".join(texts) == final.output_text
    assert final.output_text.startswith("The KV cache stores")


def test_anthropics_messages_are_the_same_texts(client: openai.OpenAI, url: str) -> None:
    values = {"model": "demo", "max_tokens": 40, "temperature": 0, "messages": QUESTION}
    expected = chat(client, temperature=0).choices[0].message.content

    def ask(**others: Any) -> Any:
        data = json.dumps({**values, **others}).encode()
        headers = {"x-api-key": KEY, "content-type": "application/json"}
        request = urllib.request.Request(f"{url}/v1/messages", data, headers)
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    reply = ask()
    assert (reply["content"], reply["stop_reason"]) == (
        [{"type": "text", "text": expected}],
        "end_turn",
    )
    stopped = ask(stop_sequences=["vectors of all", "of all"])
    assert stopped["content"][0]["text"] == expected.partition("vectors of all")[0]
    assert stopped["stop_sequence"] == "vectors of all"


def test_embeddings_are_openvino_genais(client: openai.OpenAI) -> None:
    reply = client.embeddings.create(model="bert", input=RAG["documents"])
    found = [one.embedding for one in reply.data]
    np.testing.assert_allclose(
        found, RAG["embeddings"]["bert_cls"]["documents"], rtol=1e-3, atol=1e-4
    )
    assert reply.usage.prompt_tokens > len(RAG["documents"])


def test_ranks_are_openvino_genais(client: openai.OpenAI) -> None:
    body = {"model": "xlmr", "query": RAG["query"], "documents": RAG["documents"]}
    reply = client.post("/rerank", body=body, cast_to=object)
    assert isinstance(reply, dict)
    found = [(one["index"], one["relevance_score"]) for one in reply["results"]]
    expected = RAG["ranks"]["xlmr"]["said"]
    assert [index for index, _ in found] == [index for index, _ in expected]
    np.testing.assert_allclose([s for _, s in found], [s for _, s in expected], rtol=1e-3)


def test_errors_have_the_clients_classes(client: openai.OpenAI, url: str) -> None:
    stranger = openai.OpenAI(api_key="wrong", base_url=f"{url}/v1", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.NotFoundError) as unknown:
        chat(client, model="gpt-5")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as too_long:
        chat(client, messages=[{"role": "user", "content": "a " * 500}])
    assert too_long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="bert"):
        chat(client, model="bert")


def test_a_full_queue_is_a_rate_limit(client: openai.OpenAI) -> None:
    values: Any = {"model": "demo", "prompt": "An NPU is", "max_tokens": 100, "n": 4}
    with client.completions.create(**values, stream=True) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError) as caught:
            client.completions.create(**values)
    assert int(caught.value.response.headers["Retry-After"]) > 0
