"""Effects of fields on the texts of a model that runs: vLLM's fields, bias, echoed prompts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import openai
import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.conftest import TABLE

from genai_layer.testing.toy import EOS, ids_of


@pytest.fixture
def client(running: TestClient) -> openai.OpenAI:
    return openai.OpenAI(
        api_key="none", base_url="http://127.0.0.1/v1", http_client=running, max_retries=0
    )


X = {str(ids_of("x")[0]): 100}
"""Bias by which a model only writes x."""


def complete(client: openai.OpenAI, **values: Any) -> Any:
    given = {"model": "toy", "prompt": "ab", "max_tokens": 6, "temperature": 0, **values}
    return client.completions.create(**given)


def text(client: openai.OpenAI, **values: Any) -> str:
    return complete(client, **values).choices[0].text


def scores(token: int) -> np.ndarray:
    """Return the log-probabilities of all tokens after one; the model adds a little to them."""
    return TABLE[token] - np.log(np.exp(TABLE[token], dtype=np.float64).sum())


def test_filters_leave_the_likeliest_token_to_draws(client: openai.OpenAI) -> None:
    plain = text(client)
    for values in ({"top_k": 1}, {"min_p": 0.999}):
        assert text(client, temperature=2, extra_body=values) == plain
    drawn = {text(client, temperature=2, seed=seed, extra_body={"top_k": -1}) for seed in range(4)}
    assert len(drawn) == 4


def test_a_penalty_of_repetition_changes_what_repeats(client: openai.OpenAI) -> None:
    likeliest = int(TABLE[ids_of("b")[0]].argmax())
    prompt = [likeliest, *ids_of("b")]
    plain, penalised = (
        complete(client, prompt=prompt, logprobs=0, max_tokens=1, extra_body=values).choices[0]
        for values in ({"repetition_penalty": 1.0}, {"repetition_penalty": 100.0})
    )
    assert plain.logprobs.token_logprobs[0] > penalised.logprobs.token_logprobs[0]


def test_a_bias_forces_a_token_and_forbids_one(client: openai.OpenAI) -> None:
    assert text(client, logit_bias=X) == "xxxxxx"
    likeliest = int(TABLE[ids_of("b")[0]].argmax())
    forbidden = {str(likeliest): -100}
    assert text(client, max_tokens=1, logit_bias=forbidden) != text(client, max_tokens=1)
    with pytest.raises(openai.BadRequestError, match="logit_bias: id 99999: the vocabulary has"):
        text(client, logit_bias={"99999": 1})


def test_answers_go_on_after_stop_tokens_on_request(client: openai.OpenAI) -> None:
    values: Any = {"logit_bias": {str(EOS): 100}}
    ended, going = (
        complete(client, extra_body={"ignore_eos": ignored}, **values) for ignored in (False, True)
    )
    assert (ended.choices[0].finish_reason, ended.usage.completion_tokens) == ("stop", 1)
    assert (going.choices[0].finish_reason, going.usage.completion_tokens) == ("length", 6)
    unlimited = client.chat.completions.create(
        model="toy",
        messages=[{"role": "user", "content": "a"}],
        extra_body={"ignore_eos": True},
        **values,
    )
    assert unlimited.usage is not None
    assert unlimited.usage.completion_tokens == 12  # the server's limit


def test_one_of_many_stops_ends_a_text(client: openai.OpenAI) -> None:
    whole = text(client)
    stops = [*"0123456789", whole[3:5]]
    assert text(client, stop=stops) == whole[: whole.index(whole[3:5])]


def test_the_log_probabilities_of_a_prompt_are_the_models(client: openai.OpenAI) -> None:
    prompts = ["hello", "ab"]
    values: Any = {"echo": True, "logprobs": 1, "max_tokens": 1, "logit_bias": X}
    reply = complete(client, prompt=prompts, **values)
    for prompt, choice in zip(prompts, reply.choices, strict=True):
        found, ids = choice.logprobs, ids_of(choice.text)
        assert choice.text == f"{prompt}x"
        assert found.tokens == list(choice.text)
        assert found.text_offset == [*range(len(choice.text))]
        assert (found.token_logprobs[0], found.top_logprobs[0]) == (None, None)
        for place, (before, token) in enumerate(pairwise(ids), 1):
            exact = scores(before)
            assert found.token_logprobs[place] == pytest.approx(exact[token], abs=2e-3)
            others = found.top_logprobs[place]
            assert max(others.values()) == pytest.approx(exact.max(), abs=2e-3)
            assert others[found.tokens[place]] == found.token_logprobs[place]
            assert len(others) <= 2
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 2)


def test_a_stream_has_the_log_probabilities_of_its_prompt(client: openai.OpenAI) -> None:
    values: Any = {"echo": True, "logprobs": 1, "max_tokens": 3, "logit_bias": X}
    (whole,) = complete(client, **values).choices
    parts = [chunk.choices[0] for chunk in complete(client, stream=True, **values)]
    assert "".join(part.text for part in parts) == whole.text
    for name in ("tokens", "token_logprobs", "text_offset"):
        lists = [getattr(part.logprobs, name) for part in parts if part.logprobs is not None]
        assert [one for each in lists for one in each] == getattr(whole.logprobs, name)


def test_the_last_entry_is_the_answers_even_if_it_ends(client: openai.OpenAI) -> None:
    """lm-evaluation-harness drops the entry of the one token that it requests."""
    values: Any = {"echo": True, "logprobs": 1, "max_tokens": 1, "logit_bias": {str(EOS): 100}}
    (choice,) = complete(client, **values).choices
    assert (choice.text, choice.logprobs.tokens) == ("ab", ["a", "b", "<eos>"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("logprobs", [None, 0, 1])
def test_a_prompt_is_scored_without_an_answer(
    client: openai.OpenAI, logprobs: int | None, stream: bool
) -> None:
    values: Any = {"prompt": ["hello", "ab"], "echo": True, "logprobs": logprobs}
    longer = complete(client, **values, max_tokens=1)
    reply = complete(client, **values, max_tokens=0, stream=stream)
    choices = [chunk.choices[0] for chunk in reply] if stream else reply.choices
    for number, prompt in enumerate(["hello", "ab"]):
        own = [one for one in choices if one.index == number]
        assert "".join(one.text for one in own) == prompt
        assert own[-1].finish_reason == "length"
        lists = [one.logprobs for one in own if one.logprobs is not None]
        assert bool(lists) == (logprobs is not None)
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset") if lists else ():
            found = [item for one in lists for item in getattr(one, name)]
            assert found == getattr(longer.choices[number].logprobs, name)[:-1]
    assert stream or reply.usage.completion_tokens == 0


@pytest.mark.parametrize("logprobs", [0, 1, 3])
def test_the_sampled_token_is_among_the_likeliest_ones(
    client: openai.OpenAI, logprobs: int
) -> None:
    for bias in ({}, X):
        found = complete(client, logprobs=logprobs, logit_bias=bias).choices[0].logprobs
        places = zip(found.tokens, found.token_logprobs, found.top_logprobs, strict=True)
        for token, score, others in places:
            assert others[token] >= score  # tokens of equal texts are one entry
            assert len(others) <= logprobs + 1
