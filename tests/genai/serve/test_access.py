"""Access: names of the server, origins of pages, on every route and with every method."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.conftest import Parts, run

from genai_layer.serve.access import Access
from genai_layer.serve.app import create_app
from genai_layer.serve.errors import ForeignOrigin, UnknownHost
from genai_layer.serve.hosts import Hosts, parse_host, parse_origin

Make = Callable[..., Parts]

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE")
PAGES = ("/", "/page", "/page/main.js", "/openapi.json", "/nowhere")


@pytest.mark.parametrize(
    ("own", "header"),
    [
        ((), "localhost"),
        ((), "LocalHost:8000"),
        ((), "localhost.:8000"),
        ((), "app.localhost"),
        ((), "127.0.0.1:8000"),
        ((), "127.1.2.3"),
        ((), "[::1]:8000"),
        ((), "[0:0:0:0:0:0:0:1]"),
        ((), "[::ffff:127.0.0.1]:1"),
        ((), "localhost:"),
        (["LLM.example.com."], "llm.Example.com:443"),
        (["llm.example.com"], "llm.example.com."),
        (["npu-serve"], "npu-serve:8000"),
        (["192.168.1.5"], "192.168.1.5:8000"),
        (["::ffff:192.168.1.5"], "192.168.1.5"),
        (["2001:db8::1"], "[2001:DB8:0::1]:8000"),
        (["0.0.0.0"], "192.168.1.5"),
        (["0.0.0.0"], "0.0.0.0:8000"),
        (["::"], "[2001:db8::1]:8000"),
    ],
)
def test_a_name_of_the_server_is_admitted(own: list[str], header: str) -> None:
    assert header in Hosts(own)


@pytest.mark.parametrize(
    ("own", "header"),
    [
        ((), ""),
        ((), " "),
        ((), ":8000"),
        ((), "evil.example"),
        ((), "evil.example:8000"),
        ((), "localhost.evil.example"),
        ((), "127.0.0.1.evil.example"),
        ((), "127.0.0.1@evil.example"),
        ((), "evillocalhost"),
        ((), "localhost.."),
        ((), ".localhost.evil"),
        ((), "localhost:8000:1"),
        ((), "localhost:x"),
        ((), "localhost, evil.example"),
        ((), "localhost/evil"),
        ((), "::1"),
        ((), "[::1"),
        ((), "[evil.example]"),
        ((), "[::1]evil"),
        ((), "2130706433"),
        ((), "0x7f.1"),
        ((), "192.168.1.5:8000"),
        ((), "0.0.0.0"),
        ((), "[2001:db8::1]"),
        ((), "lôcalhost"),
        (["llm.example.com"], "example.com"),
        (["llm.example.com"], "a.llm.example.com"),
        (["0.0.0.0"], "evil.example"),
    ],
)
def test_another_name_is_rejected(own: list[str], header: str) -> None:
    assert header not in Hosts(own)


@pytest.mark.parametrize("text", ["", ".", "a b", "http://a", "a:80", "[::1]", "a..b", "*", "ä"])
def test_a_name_has_neither_scheme_nor_port(text: str) -> None:
    with pytest.raises(ValueError, match="no name of a host"):
        parse_host(text)


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "null",
        "https://a.example",
        "http://localhost:3000",
        "http://127.0.0.1:3000",
        "http://[::1]:3000",
        "https://a.example:80",
        "chrome-extension://abcdef",
        "app://localhost",
    ],
)
def test_an_origin_is_as_browsers_write_it(text: str) -> None:
    assert parse_origin(text) == parse_origin(text.upper()) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example",
        "localhost:3000",
        "https://a.example/",
        "https://a.example/path",
        "https://a.example?a",
        "https://user@a.example",
        "https://*.example",
        "https://ä.example",
        "https://",
        "https://a.example:443",
        "http://a.example:80",
        "http://a.example:080",
        "http://a.example:65536",
        "http://a.example:",
        "http://[0:0:0:0:0:0:0:1]",
    ],
)
def test_an_origin_that_matches_no_page_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"origin|browsers|no name"):
        parse_origin(text)


def scope_of(method: str = "POST", **headers: str) -> dict[str, Any]:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": "/v1/completions", "headers": raw}


def test_requests_without_a_host_are_no_browsers() -> None:
    """HTTP/1.1 has one: the connection rejects a head without it."""
    Access(Hosts()).check(scope_of())
    with pytest.raises(ForeignOrigin):
        Access(Hosts()).check(scope_of(origin="http://evil.example"))
    with pytest.raises(UnknownHost):
        Access(Hosts()).check(scope_of("GET", host=""))


@pytest.mark.parametrize(
    ("origin", "admitted"),
    [
        ("http://localhost:8000", True),
        ("HTTP://LocalHost:8000", True),
        ("https://localhost:8000", True),
        ("https://friend.example", True),
        ("http://localhost:8001", False),
        ("http://localhost", False),
        ("http://127.0.0.1:8000", False),
        ("http://evil.example", False),
        ("app://localhost:8000", False),
        ("localhost:8000", False),
        ("null", False),
        ("", False),
        ("http://localhost:8000.evil.example", False),
        ("http://friend.example", False),
    ],
)
def test_pages_of_other_origins_change_nothing(origin: str, admitted: bool) -> None:
    access = Access(Hosts(), ["https://friend.example"])
    for method in METHODS:
        scope = scope_of(method, host="localhost:8000", origin=origin)
        if admitted or method in ("GET", "HEAD", "OPTIONS"):
            access.check(scope)
        else:
            with pytest.raises(ForeignOrigin, match="--cors-origin"):
                access.check(scope)
    Access(Hosts(), ["*"]).check(scope_of(host="localhost:8000", origin=origin))


def test_no_route_answers_to_another_name_or_origin(parts: Make) -> None:
    made = parts()
    app = create_app(made.models, made.commons)
    client = TestClient(app, "http://127.0.0.1:8000", raise_server_exceptions=False)
    client.follow_redirects = False
    paths = [*PAGES, *app.openapi()["paths"]]
    assert "/v1/chat/completions" in paths
    for method in METHODS:
        for path in paths:
            given = client.request(method, path, headers={"Host": "evil.example:8000"})
            assert given.status_code == 421, (method, path)
            assert method == "HEAD" or given.json()["error"]["message"].startswith("Host: ")
            if method not in ("GET", "HEAD", "OPTIONS"):
                origin = {"Origin": "http://evil.example:8000"}
                given = client.request(method, path, headers=origin)
                assert given.status_code == 403
                assert given.json()["error"]["message"].startswith("Origin: ")
    own = client.post("/v1/completions", json={}, headers={"Origin": "http://127.0.0.1:8000"})
    assert own.json()["error"]["message"] == "model: is missing; add it"


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://127.0.0.1:8000/health", "127.0.0.1:8000", 200),
        ("HTTP://LocalHost:8000/health?a=b", None, 200),
        ("http://127.0.0.1:8000", "127.0.0.1:8000", 200),
        ("http://[::1]:8000/v1/models", "evil.example", 200),
        ("http://127.0.0.1/page/../nowhere", "127.0.0.1", 404),
        ("http://evil.example/health", "127.0.0.1:8000", 421),
        ("http://127.0.0.1@evil.example/health", "127.0.0.1:8000", 421),
        ("http:///health", "127.0.0.1:8000", 421),
        ("https://127.0.0.1:8000/health", "127.0.0.1:8000", 404),
        ("http%3A//127.0.0.1:8000/health", "127.0.0.1:8000", 404),
    ],
)
def test_the_host_of_a_target_replaces_the_header(
    parts: Make, target: str, host: str | None, status: int
) -> None:
    made = parts()
    app = create_app(made.models, made.commons)
    raw, _, query = target.encode().partition(b"?")
    scope = scope_of("GET", **({} if host is None else {"host": host}))
    scope |= {"path": unquote(raw.decode()), "raw_path": raw, "query_string": query}
    scope |= {"http_version": "1.1", "scheme": "http", "server": None, "client": None}
    sent: list[Any] = []
    given = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if not given:
            await asyncio.sleep(60)
        return given.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    run(app(scope, receive, send))
    assert sent[0]["status"] == status


def test_no_answer_leads_to_another_host(parts: Make) -> None:
    """A redirection is relative, whatever names the server."""
    made = parts()
    app = create_app(made.models, made.commons, Access(Hosts(["evil.example"])))
    client = TestClient(app, "http://evil.example", follow_redirects=False)
    assert client.get("/page").headers["location"] == "./"
    for path in [*PAGES, *app.openapi()["paths"]]:
        for end in ("", "/", "//evil.example/"):
            assert client.head(path + end).headers.get("location", "./") == "./", path + end
