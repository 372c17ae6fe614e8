"""Agents that call functions: requests as openai-agents, Codex and Continue send them.

``tools/record_client_requests.py`` wrote the files: a question, and the result of a call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.genai.serve.openai.conftest import HERMES, Serve
from tests.genai.serve.openai.test_tools import accepts

from genai_layer.testing.toy import TEMPLATE

FOLDER = Path(__file__).parents[1] / "clients"
CASES = [
    "openai_agents-chat",
    "openai_agents-responses",
    "openai_agents-handoff",
    "continue_cli-print",
    "codex-exec",
]
ANSWERS = {
    "openai_agents-chat": '{"city": "Oslo", "degrees": 7}',
    "openai_agents-responses": '{"city": "Oslo", "degrees": 7}',
    "codex-exec": '{"city": "Oslo"}',
}
"""Answers in the formats that clients request; the others request none."""
ARGUMENTS = {
    "thermometer": {"city": "Oslo"},
    "transfer_to_expert": {},
    "Read": {"filepath": "Oslo"},
    "exec_command": {"cmd": "Oslo"},
}


def requests_of(case: str) -> list[Any]:
    return json.loads((FOLDER / f"{case}.json").read_text())


def call_of(body: Any) -> str:
    """Return the call of the first function that a request offers."""
    tool = body["tools"][0]
    name = tool.get("function", tool)["name"]
    call = {"name": name, "arguments": ARGUMENTS[name]}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def found_in(text: str) -> tuple[str, list[str]]:
    """Return the text of an answer, and the names of its calls, from JSON or a stream."""
    if not text.startswith(("data: ", "event: ")):
        return found_in_reply(json.loads(text))
    datas = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    events = [json.loads(data) for data in datas]
    if events[-1].get("type") == "response.completed":
        return found_in_reply(events[-1]["response"])
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    content = "".join(delta.get("content") or "" for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    return content, [call["function"]["name"] for call in calls]


def found_in_reply(reply: Any) -> tuple[str, list[str]]:
    """Return the text and the names of the calls of a reply."""
    if "choices" in reply:
        message = reply["choices"][0]["message"]
        names = [call["function"]["name"] for call in message.get("tool_calls", ())]
        return message["content"] or "", names
    parts = [part for item in reply["output"] for part in item.get("content", ())]
    names = [item["name"] for item in reply["output"] if item["type"] == "function_call"]
    return "".join(part["text"] for part in parts), names


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("template", [HERMES, TEMPLATE], ids=["hermes", "generic"])
def test_an_agent_gets_a_call_and_then_an_answer(
    serve: Serve, http: TestClient, case: str, template: str
) -> None:
    first, second = requests_of(case)
    call, answer = call_of(first["body"]), ANSWERS.get(case, "It is 7.")
    _, model = serve(call, answer, template=template)
    replies = [http.post(one["path"], json=one["body"]) for one in (first, second)]
    assert [reply.status_code for reply in replies] == [200, 200], replies[0].text
    name = json.loads(call.split("\n")[1])["name"]
    assert found_in(replies[0].text) == ("", [name])
    assert found_in(replies[1].text) == (answer, [])
    assert call.split("\n")[1] in model.prompt()


@pytest.mark.parametrize("case", ["openai_agents-chat", "openai_agents-responses", "codex-exec"])
def test_an_agents_format_holds_beside_its_functions(
    serve: Serve, http: TestClient, case: str
) -> None:
    first, _ = requests_of(case)
    _, model = serve("x", template=HERMES)
    http.post(first["path"], json=first["body"])
    assert accepts(model, call_of(first["body"]))
    assert accepts(model, ANSWERS[case])
    assert not accepts(model, "It is 7.")


def test_a_handoff_is_one_call(serve: Serve, http: TestClient) -> None:
    first, _ = requests_of("openai_agents-handoff")
    _, model = serve("x", template=HERMES)
    http.post(first["path"], json=first["body"])
    call = call_of(first["body"])
    assert accepts(model, call)
    assert not accepts(model, f"{call}\n{call}")
