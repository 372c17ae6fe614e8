"""Application: key, bounds of bodies, clients that leave, errors, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from tests.genai.serve.conftest import Parts, greedy, run, text_of

from genai_layer import PromptError
from genai_layer.serve.access import Access
from genai_layer.serve.app import create_app
from genai_layer.serve.hosts import Hosts
from genai_layer.serve.limits import Limits
from genai_layer.serve.middleware import Exchange

Make = Callable[..., Parts]


LOCAL = "http://127.0.0.1"


def app_of(made: Parts, key: str | None = None, origins: Sequence[str] = ()) -> FastAPI:
    app = create_app(made.models, made.commons, Access(Hosts(), origins, key))

    @app.post("/echo")
    async def echo(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.get("/typed/{number}")
    async def typed(number: int) -> int:
        return number

    @app.get("/prompt")
    async def prompt() -> None:
        raise PromptError("the prompt is empty")

    @app.get("/defect")
    async def defect() -> None:
        raise KeyError("secret")

    return app


def client_of(made: Parts, **options: Any) -> TestClient:
    return TestClient(app_of(made, **options), LOCAL, raise_server_exceptions=False)


def test_all_but_health_and_the_page_need_the_key(parts: Make) -> None:
    client = client_of(parts(), key="sésame")
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").status_code == 503
    assert client.get("/page").headers["content-type"] == "text/html; charset=utf-8"
    for key in (None, "Bearer", "Bearer wrong", "Basic sésame", "Bearer sésame2", "Bearer ÿ"):
        headers = {} if key is None else {"Authorization": key.encode()}
        for path in ("/metrics", "/openapi.json", "/nowhere", "/pages"):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
    for word in ("Bearer", "bearer"):
        assert client.get("/metrics", headers={"Authorization": f"{word} sésame".encode()})


def test_errors_have_openais_form_and_no_details(parts: Make) -> None:
    client = client_of(parts())
    for path, status, message in (
        ("/nowhere", 404, "GET /nowhere: Not Found"),
        ("/echo", 405, "GET /echo: Method Not Allowed"),
        ("/typed/x", 400, "path.number: should be a valid integer"),
        ("/prompt", 400, "the prompt is empty"),
        ("/defect", 500, "the server failed; its log has the reason"),
    ):
        answer = client.get(path)
        error = answer.json()["error"]
        assert answer.status_code == status
        assert error["message"].startswith(message)
        assert set(error) == {"message", "type", "param", "code"}
        assert "secret" not in answer.text


def test_bodies_have_a_limit_with_and_without_a_length(parts: Make) -> None:
    client = client_of(parts(max_body=100))
    assert client.post("/echo", content=bytes(100)).json() == {"bytes": 100}
    for content in (bytes(101), iter([bytes(60), bytes(60)])):
        answer = client.post("/echo", content=content)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_bodies_are_bounded_before_the_key_is_checked(parts: Make) -> None:
    client = client_of(parts(max_body=100), key="key")
    for content, status in ((bytes(100), 401), (bytes(101), 413), (iter([bytes(101)]), 413)):
        assert client.post("/echo", content=content).status_code == status
    for path in ("/health", "/metrics", "/nowhere"):
        assert client.request("GET", path, content=bytes(101)).status_code == 413


def test_head_is_get_without_a_body(parts: Make) -> None:
    client = client_of(parts())
    paths = ("/", "/page/main.js", "/health", "/ready", "/metrics", "/openapi.json", "/v1/models")
    for path in (*paths, "/npu/state", "/v1/completions", "/nowhere"):
        known, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (known.status_code, b"")
        assert head.headers["content-type"] == known.headers["content-type"]


def test_the_head_of_a_stream_ends_the_work(parts: Make) -> None:
    async def ask() -> None:
        async def forever() -> AsyncIterator[bytes]:
            while True:
                yield b"x"
                if len(connection.sent) > 1:  # as uvicorn reports the end of a response
                    connection.messages.put_nowait(LEAVES)

        connection = Connection(BODY)
        await connection.run(StreamingResponse(forever()), "HEAD")
        assert connection.sent[0]["status"] == 200
        assert [one["body"] for one in connection.sent[1:]] == [b""]

    run(ask())


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_content_type_that_is_not_jsons_is_named(parts: Make, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    answer = client_of(parts()).post("/v1/completions", content=b"{}", headers=headers)
    assert answer.status_code == 400
    message = "Content-Type: the body is not sent as JSON; send application/json"
    assert answer.json()["error"]["message"] == message


def test_other_origins_are_allowed_by_option_alone(parts: Make) -> None:
    origin, name = {"Origin": "https://a.example"}, "access-control-allow-origin"
    assert name not in client_of(parts()).get("/health", headers=origin).headers
    client = client_of(parts(), origins=["https://a.example"], key="key")
    assert client.get("/metrics", headers=origin).headers[name] == "https://a.example"
    asked = {**origin, "Access-Control-Request-Method": "POST"}
    assert client.options("/echo", headers=asked).status_code == 200
    assert name not in client.get("/health", headers={"Origin": "https://b.example"}).headers


def test_metrics_count_requests_and_tokens(parts: Make) -> None:
    async def ask() -> list[str]:
        made = parts()
        model = await made.models.text("toy")
        await text_of(await model.submit("hello", greedy(5), ""))
        completed = client_of(made).get("/metrics").text
        (await model.submit("hello", greedy(4000, ignore_eos=True), "")).cancel()
        await made.commons.activity.stop(10)
        return [completed, client_of(made).get("/metrics").text]

    completed, ended = run(ask())
    label = '{model_name="toy"}'
    for line in (
        f"vllm:num_requests_running{label} 0.0",
        f"vllm:num_requests_waiting{label} 0.0",
        f"vllm:generation_tokens_total{label} 5.0",
        f"vllm:prompt_tokens_total{label} 5.0",
        f"vllm:time_to_first_token_seconds_count{label} 1.0",
        f"vllm:inter_token_latency_seconds_count{label} 4.0",
        'vllm:request_success_total{finished_reason="length",model_name="toy"} 1.0',
        f"npu_model_bytes{label} 100.0",
    ):
        assert line in completed.splitlines()
    line = 'vllm:request_success_total{finished_reason="abort",model_name="toy"} 1.0'
    assert line in ended.splitlines()


class Connection:
    """Connection of an ASGI server: what the client sends, and what it received."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = asyncio.Queue[dict[str, Any]]()
        self.sent: list[dict[str, Any]] = []
        for message in messages:
            self.messages.put_nowait(message)

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def run(self, app: Any, method: str = "GET", **limits: Any) -> None:
        scope = {"type": "http", "method": method, "path": "/", "headers": [], "query_string": b""}
        guarded = Exchange(app, Limits(**limits), lambda _: None, lambda _: None)
        await guarded(scope, self.messages.get, self.send)


BODY = {"type": "http.request", "body": b"", "more_body": False}
LEAVES = {"type": "http.disconnect"}


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_leaves_ends_the_work(streams: bool) -> None:
    async def leave() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def forever() -> AsyncIterator[bytes]:
            try:
                began.set()
                yield b"x"
                await asyncio.sleep(60)
            finally:
                ended.set()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if streams:
                await StreamingResponse(forever())(scope, receive, send)
            async for _ in forever():
                pass

        connection = Connection(BODY)
        serving = asyncio.ensure_future(connection.run(app))
        await began.wait()
        connection.messages.put_nowait(LEAVES)
        await serving
        assert ended.is_set()

    run(leave())


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def wait() -> None:
        part = {"type": "http.request", "body": b"{", "more_body": True}
        connection = Connection(part)
        await connection.run(None, body_timeout=0.01)
        assert connection.sent[0]["status"] == 408
        await Connection(part, LEAVES).run(None)  # without an answer

    run(wait())


def test_the_end_of_the_server_ends_responses_properly() -> None:
    async def end(streams: bool) -> Connection:
        began = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if streams:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            began.set()
            await asyncio.sleep(60)

        connection = Connection(BODY)
        serving = asyncio.ensure_future(connection.run(app))
        await began.wait()
        serving.cancel()
        await serving
        return connection

    async def end_within_a_body() -> Connection:
        connection = Connection({"type": "http.request", "body": b"{", "more_body": True})
        serving = asyncio.ensure_future(connection.run(None))
        await asyncio.sleep(0.01)
        serving.cancel()
        await serving
        return connection

    assert run(end_within_a_body()).sent[0]["status"] == 503
    assert run(end(True)).sent[-1] == {"type": "http.response.body", "body": b""}
    assert [one.get("status") for one in run(end(False)).sent] == [503, None]


def test_a_response_has_the_id_of_its_request_or_a_new_one(parts: Make, caplog) -> None:
    client = client_of(parts(), key="key", origins=["https://a.example"])
    assert client.get("/health", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == (
        "mine-1"
    )
    new = {client.get(path).headers["x-request-id"] for path in ("/health", "/nowhere", "/metrics")}
    assert len(new) == 3
    for odd in ("", "a b", "é".encode(), "x" * 129):
        found = client.get("/health", headers={"X-Request-Id": odd}).headers["x-request-id"]
        assert len(found) == 32
    headers = {"X-Request-Id": "mine-2", "Authorization": "Bearer key"}
    assert client.get("/defect", headers=headers).headers["x-request-id"] == "mine-2"
    assert "GET /defect failed: mine-2" in caplog.text


BOMB: Any = {
    "type": "object",
    "properties": {"a": {"allOf": [{"pattern": f"a{{{count}}}"} for count in range(60)]}},
    "required": ["a"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": BOMB}}
TOOL = {"type": "function", "function": {"name": "x", "parameters": BOMB, "strict": True}}
CHOICE = {"type": "function", "function": {"name": "x"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": FORM},
        {"response_format": FORM, "stream": True},
        {"tools": [TOOL], "tool_choice": CHOICE},
    ],
    ids=["format", "stream", "tools"],
)
def test_a_schema_that_merges_too_much_is_the_clients_error(parts: Make, fields: Any) -> None:
    body = {"model": "toy", "messages": [{"role": "user", "content": "a"}], **fields}
    with client_of(parts()) as client:
        answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400, answer.text
    assert "/properties/a: 60 patterns" in answer.json()["error"]["message"]
