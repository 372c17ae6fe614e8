"""Tools of other types than functions: left out, with a note in the log."""

from __future__ import annotations

import logging
from typing import Any

import openai
import pytest
from tests.genai.serve.openai.conftest import HERMES, Serve

from genai_layer.serve.openai.tools import others

SEARCH: Any = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}
FUNCTION: Any = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CHAT: Any = {"model": "toy", "messages": [{"role": "user", "content": "a"}]}


def test_a_chat_offers_functions_alone(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client, model = serve("x", template=HERMES)
    kind = {"type": "of_a_chat"}
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            tools: Any = [kind, {"type": "function", "function": FUNCTION}, SEARCH]
            client.chat.completions.create(**CHAT, tools=tools)
    assert '"name": "f"' in model.prompt()
    assert "of_a_chat" not in model.prompt()
    assert "web_search" not in model.prompt()
    noted = [one.message for one in caplog.records if "of_a_chat" in one.message]
    assert noted == ["tools: type 'of_a_chat' is left out; the model can call functions only"]


def test_the_log_reports_a_bounded_number_of_types(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(others, "_reported", set())
    client, _ = serve("x", template=HERMES)
    with caplog.at_level(logging.WARNING):
        client.chat.completions.create(**CHAT, tools=[{"type": f"kind-{n}"} for n in range(100)])
    assert sum("kind-" in one.message for one in caplog.records) == 64


def test_without_functions_the_model_is_offered_nothing(serve: Serve) -> None:
    client, model = serve("x", template=HERMES)
    client.chat.completions.create(**CHAT, tools=[SEARCH])
    assert "tool_call" not in model.prompt()
    with pytest.raises(openai.BadRequestError, match="tool_choice: no function is among tools"):
        client.chat.completions.create(**CHAT, tools=[SEARCH], tool_choice="required")


def test_a_response_repeats_the_functions_that_it_offers(serve: Serve) -> None:
    client, model = serve("x", template=HERMES)
    reply = client.responses.create(
        model="toy", input="a", tools=[SEARCH, {"type": "function", "strict": False, **FUNCTION}]
    )
    assert [tool.type for tool in reply.tools] == ["function"]
    assert "web_search" not in model.prompt()
