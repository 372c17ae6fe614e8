"""The description of the routes in OpenAPI, and a property test of their bodies."""

from __future__ import annotations

from typing import Any

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)
from tests.genai.serve.anthropic.conftest import KEY, Serve

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
HEADERS = {"x-api-key": KEY}


def test_no_body_makes_the_server_fail(serve: Serve, http: TestClient) -> None:
    serve("wörld", "").room = 1 << 30
    schema = schemathesis.openapi.from_asgi("/openapi.json", http.app, headers=HEADERS)
    chosen = schema.include(path_regex="^/v1/messages")
    operations = [result.ok() for result in chosen.get_all_operations()]
    assert len(operations) == 2
    for operation in operations:

        @given(case=operation.as_strategy(), known=st.booleans())
        @settings(max_examples=12, suppress_health_check=[*HealthCheck], database=None)
        def check(case: Any, known: bool) -> None:
            if known and isinstance(case.body, dict):
                case.body["model"] = "toy"
            case.validate_response(case.call(headers=HEADERS), checks=CHECKS)

        check()
