"""/v1/embeddings, /v1/rerank and /v1/models."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.openai.conftest import Serve

from genai_layer.serve.openai.texts import MOST_CHARACTERS


def test_the_client_unpacks_embeddings(serve: Serve) -> None:
    """The client requests base64 unless a format is given."""
    client, _ = serve("x")
    for values in ({}, {"encoding_format": "float"}):
        reply = client.embeddings.create(model="embed", input=["a", "abc"], **values)
        assert [one.embedding for one in reply.data] == [[1.0, 0.5], [3.0, 0.5]]
        assert [one.index for one in reply.data] == [0, 1]
        assert reply.usage.prompt_tokens == 4
    reply = client.embeddings.create(model="embed", input="abc")
    assert reply.data[0].embedding == [3.0, 0.5]


LONG = "a" * (MOST_CHARACTERS + 1)


@pytest.mark.parametrize(
    ("path", "values", "param"),
    [
        ("embeddings", {"model": "embed", "input": LONG}, "input"),
        ("embeddings", {"model": "embed", "input": ["a", LONG]}, "input.1"),
        ("rerank", {"model": "rank", "query": LONG, "documents": ["a"]}, "query"),
        ("rerank", {"model": "rank", "query": "a", "documents": [LONG]}, "documents.0"),
        (
            "rerank",
            {"model": "rank", "query": "a", "documents": [{"text": LONG}]},
            "documents.0.text",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_characters_of_a_text_are_bounded(
    serve: Serve, http: TestClient, path: str, values: Any, param: str
) -> None:
    serve("x")
    reply = http.post(f"/v1/{path}", json=values)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert "at most 262144 characters" in error["message"]


@pytest.mark.parametrize(
    ("values", "param"), [({"dimensions": 2}, "dimensions"), ({"input": [1, 2]}, "input.0")]
)
def test_what_embeddings_do_not_support_is_rejected(serve: Serve, values: Any, param: str) -> None:
    client, _ = serve("x")
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(**{"model": "embed", "input": "a", **values})
    assert caught.value.param == param


def rank(http: TestClient, **values: Any) -> Any:
    body = {"model": "rank", "query": "q", "documents": ["abc", {"text": "a"}], **values}
    return http.post("/v1/rerank", json=body).json()


def test_the_best_documents_come_first(serve: Serve, http: TestClient) -> None:
    serve("x")
    found = rank(http)
    assert [(one["index"], one["relevance_score"]) for one in found["results"]] == [
        (1, 0.5),
        (0, 0.25),
    ]
    assert [one["document"]["text"] for one in found["results"]] == ["a", "abc"]
    assert found["usage"] == {"prompt_tokens": 1, "total_tokens": 1}


def test_the_number_of_results_and_their_texts_are_options(serve: Serve, http: TestClient) -> None:
    serve("x")
    found = rank(http, top_n=1, return_documents=False)
    assert found["results"] == [{"index": 1, "relevance_score": 0.5}]


def test_models_are_listed_and_found(serve: Serve) -> None:
    client, _ = serve("x")
    assert [one.id for one in client.models.list()] == ["toy", "embed", "rank", "speech"]
    found: Any = client.models.retrieve("rank")
    assert (found.id, found.kind, found.loaded, found.created) == ("rank", "rerank", False, 3)
    with pytest.raises(openai.NotFoundError, match="use one of toy, embed, rank, speech") as caught:
        client.models.retrieve("other/model")
    assert caught.value.code == "model_not_found"
