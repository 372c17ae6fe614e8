"""/v1/completions with the official client."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.genai.serve.openai.conftest import Serve

from genai_layer.testing.toy import ids_of


def complete(client: openai.OpenAI, **values: Any) -> Any:
    return client.completions.create(**{"model": "toy", "prompt": "ab", **values})


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("ab", ["ab"]),
        (["ab", "c"], ["ab", "c"]),
        (ids_of("ab"), ["ab"]),
        ([ids_of("ab"), ids_of("c")], ["ab", "c"]),
        ("", [""]),
    ],
    ids=str,
)
def test_prompts_are_texts_or_ids(serve: Serve, prompt: Any, prompts: list[str]) -> None:
    client, model = serve("one", "two")
    reply = complete(client, prompt=prompt)
    assert [one.prompt for one in model.submitted] == [ids_of(text) for text in prompts]
    assert [choice.text for choice in reply.choices] == ["one", "two"][: len(prompts)]
    assert reply.usage.prompt_tokens == sum(map(len, prompts))


def test_choices_of_a_prompt_follow_each_other(serve: Serve) -> None:
    client, model = serve("a", "b", "c", "d")
    reply = complete(client, prompt=["x", "yz"], n=2, seed=1)
    assert [(one.prompt, one.config.rng_seed) for one in model.submitted] == [
        (ids_of(text), seed) for text in ("x", "yz") for seed in (1, 2)
    ]
    assert [(choice.index, choice.text) for choice in reply.choices] == [*enumerate("abcd")]
    assert reply.usage.prompt_tokens == 3


def test_sixteen_tokens_are_the_default(serve: Serve) -> None:
    client, _ = serve("x" * 20)
    for values in ({}, {"max_tokens": None}):
        (choice,) = complete(client, **values).choices
        assert (choice.text, choice.finish_reason) == ("x" * 16, "length")


@pytest.mark.parametrize("prompt", ["ab", ids_of("ab")], ids=str)
def test_a_text_begins_with_its_prompt_on_request(serve: Serve, prompt: Any) -> None:
    client, _ = serve("one")
    assert complete(client, prompt=prompt, echo=True).choices[0].text == "abone"
    parts = [
        chunk.choices[0].text for chunk in complete(client, prompt=prompt, echo=True, stream=True)
    ]
    assert "".join(parts) == "abone"


def test_log_probabilities_stand_side_by_side(serve: Serve) -> None:
    client, _ = serve("hö!")
    found = complete(client, logprobs=2).choices[0].logprobs
    assert found.tokens == ["h", "\ufffd", "\ufffd", "!", "<eos>"]
    assert found.token_logprobs == [-0.5] * 5
    assert found.text_offset == [0, 1, 1, 2, 3]
    assert [len(one) for one in found.top_logprobs] == [3] * 5
    chunks = [chunk.choices[0] for chunk in complete(client, logprobs=0, stream=True)]
    assert [token for chunk in chunks for token in chunk.logprobs.tokens] == found.tokens
    assert [at for chunk in chunks for at in chunk.logprobs.text_offset][0::3] == [0, 2]


def test_a_stream_ends_with_the_usage_on_request(serve: Serve) -> None:
    client, _ = serve("one")
    *chunks, last = complete(client, stream=True, stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].text for chunk in chunks) == "one"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert (last.choices, last.usage.completion_tokens) == ([], 4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"suffix": "x"}, "suffix: is not supported"),
        ({"best_of": 2}, "best_of: should be 1"),
        ({"logit_bias": {"5": 300}}, "logit_bias.5"),
        ({"max_tokens": 0}, "max_tokens = 0: needs echo; set it to true"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [-1]}, "prompt.0"),
    ],
    ids=str,
)
def test_what_is_not_supported_is_rejected_by_name(serve: Serve, values, message) -> None:
    client, _ = serve("x")
    with pytest.raises(openai.BadRequestError, match=message):
        complete(client, **values)
