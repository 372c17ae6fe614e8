"""Dashboard for Grafana: its queries ask for what the server's metrics have."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.stack.serve.conftest import ROOT, Serve

DASHBOARD: Any = json.loads((ROOT / "containers" / "grafana" / "npu-serve.json").read_text())
QUERIES = {
    f"{panel['title']}: {target['legendFormat']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel["targets"]
}
NAME = re.compile(r"((?:vllm|npu|process)[:_][a-z0-9_]+)(?:\{([^}]*)\})?")


@pytest.fixture(scope="module")
def samples(serve_demo: Serve) -> dict[str, set[str]]:
    """Labels of each sample that a real server exposes after an answer, by its name."""
    with serve_demo() as server:
        address = f"http://127.0.0.1:{server.port}"
        body = json.dumps({"model": "demo", "prompt": "Hello!", "max_tokens": 3}).encode()
        asked = Request(f"{address}/v1/completions", body, {"Content-Type": "application/json"})
        with urlopen(asked) as answer:
            assert answer.status == 200
        with urlopen(f"{address}/metrics") as exposed:
            families = list(text_string_to_metric_families(exposed.read().decode()))
    return {one.name: set(one.labels) for family in families for one in family.samples}


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_names_metrics_and_labels_that_the_server_exposes(
    title: str, samples: dict[str, set[str]]
) -> None:
    query = QUERIES[title]
    found = NAME.findall(query)
    assert found
    for name, selectors in found:
        assert name in samples
        labels = {one.partition("=")[0] for one in selectors.split(",") if one}
        grouped = re.findall(r"by \(([^)]*)\)", query)
        labels |= {label.strip() for one in grouped for label in one.split(",")}
        assert labels <= samples[name]


def test_the_choice_of_models_is_that_of_the_metrics(samples: dict[str, set[str]]) -> None:
    (choice,) = DASHBOARD["templating"]["list"]
    ((name, label),) = re.findall(r"^label_values\((\S+), (\S+)\)$", choice["query"])
    assert label in samples[name]
