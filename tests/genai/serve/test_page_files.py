"""The files of the page, as the server sends them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from genai_layer.serve import page


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()
    app.include_router(page.router())
    with TestClient(app) as client:
        yield client


def test_every_file_that_the_page_names_is_there(client: TestClient) -> None:
    """Modules import relative paths; the page names its own by the path of the route."""
    waiting, seen = ["/"], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        response = client.get(path)
        assert response.status_code == 200, path
        if "/vendor/" in path:
            continue
        folder = path.rpartition("/")[0]
        text = response.text
        waiting += ["/" + name for name in re.findall(r'(?:href|src)="(page/[^"]+)"', text)]
        names = re.findall(r'^import (?:.* from )?"([^"]+)";', text, re.MULTILINE)
        waiting += [str(client.base_url.join(f"{folder}/{name}").path) for name in names]
    served = {f"/page/{name.relative_to(page.STATIC)}" for name in page.STATIC.rglob("*.js")}
    assert served <= seen


def test_only_files_of_this_server_may_run(client: TestClient) -> None:
    index = client.get("/")
    policy = index.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert index.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", index.text) == []


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/page/main.js", "text/javascript; charset=utf-8"),
        ("/page/style.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
        ("/page/vendor/LICENSE.marked", "text/plain; charset=utf-8"),
    ],
)
def test_files_have_their_types(client: TestClient, path: str, media_type: str) -> None:
    assert client.get(path).headers["content-type"] == media_type


def test_a_browser_that_knows_a_file_is_not_sent_it_again(client: TestClient) -> None:
    first = client.get("/page/main.js")
    again = client.get("/page/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    changed = client.get("/page/main.js", headers={"If-None-Match": '"other"'})
    assert changed.content == first.content


@pytest.mark.parametrize("name", ["nothing.js", "../__init__.py", "%2e%2e/__init__.py", "vendor"])
def test_other_paths_are_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"/page/{name}").status_code == 404
