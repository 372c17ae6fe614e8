"""The description in OpenAPI, and a property test of all endpoints."""

from __future__ import annotations

from typing import Any

import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.genai.serve.openai.conftest import Serve

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MODELS = {
    "/v1/embeddings": "embed",
    "/v1/rerank": "rank",
    "/v1/audio/transcriptions": "speech",
}


def test_each_endpoint_describes_its_errors(app: FastAPI) -> None:
    described = app.openapi()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            statuses = {"200", "401", "404", "421", "503"}
            if method == "post":
                statuses |= {"400", "403", "408", "413", "429", "500", "504"}
            assert operation["responses"].keys() == statuses, path
            assert operation["responses"]["404"]["content"]["application/json"]["schema"] == {
                "$ref": "#/components/schemas/ErrorReply"
            }
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_no_body_makes_the_server_fail(serve: Serve, app: FastAPI) -> None:
    _, model = serve("wörld", '{"a": 1}', "")
    model.room = 1 << 30
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 8
    for operation in operations:

        @given(case=operation.as_strategy(), known=st.booleans())
        @settings(max_examples=12, suppress_health_check=[*HealthCheck], database=None)
        def check(case: Any, known: bool) -> None:
            if known and isinstance(case.body, dict):
                case.body["model"] = MODELS.get(case.operation.path, "toy")
            case.validate_response(case.call(), checks=CHECKS)

        check()
