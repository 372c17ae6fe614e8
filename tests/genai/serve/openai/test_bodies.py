"""Bodies are bounded by their parts before they are parsed, and rejected at their first errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from tests.genai.serve.openai.conftest import Serve

from genai_layer.serve.errors import BadRequest, UnknownModel
from genai_layer.serve.openai import bodies
from genai_layer.serve.openai.bodies import BodyRoute, check_parts, read_body
from genai_layer.serve.openai.completions import CompletionRequest
from genai_layer.serve.openai.schemas.chat import ChatRequest


def routes_of(app: Any) -> Iterator[APIRoute]:
    for route in app.routes:
        router = getattr(route, "original_router", None)
        if isinstance(route, APIRoute):
            yield route
        elif router is not None:
            yield from routes_of(router)


def body_routes(app: FastAPI) -> dict[str, APIRoute]:
    """Return the routes with a JSON body, by path."""
    found: dict[str, APIRoute] = {}
    for route in routes_of(app):
        kind = route.body_field and route.body_field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found[route.path] = route
    return found


def lists_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the lists in a schema of pydantic's core."""
    if isinstance(schema, dict):
        found = cast(dict[str, Any], schema)
        if found.get("type") == "list":
            yield found
        schema = list(found.values())
    if isinstance(schema, list | tuple):
        for one in cast(list[Any], schema):
            yield from lists_of(one)


def test_every_body_is_bounded_and_rejected_at_its_first_errors(app: FastAPI) -> None:
    found = body_routes(app)
    assert {"/v1/chat/completions", "/v1/responses", "/v1/embeddings"} <= found.keys()
    for path, route in found.items():
        assert isinstance(route, BodyRoute), f"{path}: pass route_class=BodyRoute to its router"
        assert route.body_field is not None
        kind: Any = route.body_field.field_info.annotation
        for one in lists_of(kind.__pydantic_core_schema__):
            assert one.get("fail_fast"), f"{path}: {one}"


def test_a_list_has_one_error() -> None:
    with pytest.raises(ValidationError) as caught:
        CompletionRequest.model_validate({"model": "a", "prompt": [{"a": 1}] * 1000})
    assert caught.value.error_count() == len(["str", "list[str]", "list[int]", "list[list[int]]"])


MANY_KEYS = {f"k{number}": 1 for number in range(bodies.MOST_KEYS + 1)}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "[" * (1 << 15)}}


@pytest.mark.parametrize(
    ("path", "fields", "param", "text"),
    [
        ("completions", {"prompt": [{"a": 1}] * 20_000}, "prompt", "16384 objects and lists"),
        ("completions", {"prompt": [[]] * 20_000}, "prompt", "16384 objects and lists"),
        ("completions", {"prompt": [1] * 270_000}, "prompt", "262144 values"),
        ("completions", {"prompt": "a", **MANY_KEYS}, "k4094", "4096 keys in an object"),
        ("completions", {"prompt": "a", "logit_bias": MANY_KEYS}, "logit_bias", "4096 keys"),
        ("chat/completions", {"messages": [{"content": 1}] * 20_000}, "messages", "16384 objects"),
        (
            "chat/completions",
            {"messages": [{"role": "assistant", "tool_calls": [CALL]}]},
            "messages",
            "16384 objects and lists",
        ),
        ("responses", {"input": "a", "metadata": MANY_KEYS}, "metadata", "4096 keys"),
        ("embeddings", {"input": [[1]] * 20_000}, "input", "16384 objects and lists"),
        ("rerank", {"query": "a", "documents": [{"b": 1}] * 20_000}, "documents", "16384 objects"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_too_many_parts_are_rejected_by_field(
    serve: Serve, http: TestClient, path: str, fields: Any, param: str, text: str
) -> None:
    serve("x")
    reply = http.post(f"/v1/{path}", json={"model": "toy", **fields})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert error["message"].startswith(f"{param}: more than {text}")
    assert error["message"].endswith("; send less in a request")


@pytest.mark.parametrize("key", ["arguments", r"\u0061rguments"])
@pytest.mark.parametrize("part", ["[]", "{}", r"\u005b]", r"\u007B}"])
def test_json_in_a_text_counts_however_it_is_written(key: str, part: str) -> None:
    body = f'{{"messages": [{{"{key}": "[{part * 20_000}]"}}]}}'
    with pytest.raises(BadRequest, match="messages: more than 16384 objects and lists"):
        check_parts(body.encode())


def test_parts_in_texts_do_not_count() -> None:
    for text in ('[{"a":1},' * 200_000, '\\"[' * 200_000, "a: [b], " * 200_000):
        body = json.dumps({"model": "a", "prompt": text}).encode()
        assert read_body(body, TypeAdapter[Any](CompletionRequest)).prompt == text


@pytest.mark.parametrize("text", [b'"\\"' * 100_000, b'"' + b"\\" * 200_001, b"]}" * 100_000])
def test_what_is_no_json_is_read_once(text: bytes) -> None:
    with pytest.raises(BadRequest, match="no JSON"):
        read_body(b"[" + text + b":" * 5000, TypeAdapter[Any](CompletionRequest))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_json_is_utf_8(encoding: str) -> None:
    body = json.dumps({"model": "a", "prompt": "b"}).encode(encoding)
    with pytest.raises(BadRequest, match="no JSON"):
        read_body(body, TypeAdapter[Any](CompletionRequest))


_JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text('a[]{},:"\\ \u00e9'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab[]{},: "), inner),
)


def size_of(value: Any) -> tuple[int, int, int, int]:
    """Return the containers of a value, the values in them, the most keys of an object, levels."""
    if not isinstance(value, dict | list):
        return 0, 0, 0, 0
    inner: list[Any] = [*(value.values() if isinstance(value, dict) else value)]
    below = [size_of(one) for one in inner]
    keys = len(inner) if isinstance(value, dict) else 0
    return (
        1 + sum(one[0] for one in below),
        len(inner) + sum(one[1] for one in below),
        max([keys, *(one[2] for one in below)]),
        1 + max([0, *(one[3] for one in below)]),
    )


@pytest.mark.parametrize("bound", ["containers", "values", "keys", "levels"])
def test_parts_are_counted_as_parsed(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body with as many parts as a bound is read, and one with one more is rejected."""
    name = f"MOST_{bound.upper()}"

    @given(_JSON, st.sampled_from([None, 1]))
    def check(value: Any, indent: int | None) -> None:
        body = json.dumps({"a": value}, indent=indent).encode()
        containers, values, keys, levels = size_of({"a": value})
        sizes = {"containers": containers, "values": values, "keys": keys, "levels": levels}
        exact = sizes[bound]
        # An empty object counts as one value, as an object with one has.
        slack = containers + 1 if bound == "values" else 0
        monkeypatch.setattr(bodies, name, exact + slack)
        check_parts(body)
        monkeypatch.setattr(bodies, name, exact - 2 - slack)
        if exact > 2 + slack:
            with pytest.raises(BadRequest):
                check_parts(body)

    check()


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("[" * 512 + "]" * 512, "prompt: more than 512 levels of objects and lists; send less"),
        ('{"a":' * 90_000 + "1" + "}" * 90_000, "prompt: more than "),
        ("9" * 4301, "body: an integer has more than 4300 digits; send less"),
        ("[1, -" + "9" * 5000 + "]", "body: an integer has more than 4300 digits; send less"),
        ("9" * 4301 + "x", "body: "),
        ("[" * 127 + "]" * 126, "body: the body is no JSON"),
    ],
    ids=lambda value: value[:20],
)
def test_json_that_is_not_read_is_named(prompt: str, text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_body(f'{{"prompt": {prompt}}}'.encode(), TypeAdapter[Any](CompletionRequest))
    assert str(caught.value).startswith(text)


def test_an_error_repeats_a_part_of_a_long_text() -> None:
    error = UnknownModel(f"model {'a' * 4_000_000!r}: unknown", param="b" * 4_000_000)
    assert len(json.dumps(error.body())) < 5000
    assert str(error).startswith("model 'aaa")
    assert str(error).endswith("aaa': unknown")


def test_an_item_that_is_no_object_is_named() -> None:
    with pytest.raises(BadRequest, match=r"^messages\.1: ") as caught:
        read_body(
            b'{"model": "a", "messages": [{"role": "user", "content": "b"}, 1]}',
            TypeAdapter[Any](ChatRequest),
        )
    assert caught.value.param == "messages.1"
    with pytest.raises(BadRequest, match=r"^stream_options: should be an object$"):
        read_body(
            b'{"model": "a", "prompt": "b", "stream_options": 1}',
            TypeAdapter[Any](CompletionRequest),
        )
