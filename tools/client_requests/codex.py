"""Codex, OpenAI's coding agent: /v1/responses with functions beside the format of the answer.

Needs ``npm install @openai/codex``. The instructions are short ones, and the tools of sub-agents,
whose descriptions are long, are off.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from client_programs import run, version_of

CLIENT, DISTRIBUTION = "codex", "@openai/codex"
SETTINGS = """\
model = "toy"
model_provider = "npu"
model_instructions_file = "{home}/instructions.md"
include_permissions_instructions = false
include_environment_context = false
[features]
goals = false
view_image = false
[agents]
enabled = false
[skills]
include_instructions = false
[tools.experimental_request_user_input]
enabled = false
[model_providers.npu]
name = "npu-serve"
base_url = "{base_url}"
wire_api = "responses"
request_max_retries = 0
"""
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPTIONS = ["--skip-git-repo-check", "--sandbox", "read-only", "--output-schema"]


def version() -> str:
    """Return the version of the program."""
    return version_of("codex", DISTRIBUTION)


def _exec(base_url: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        home, schema = Path(name), Path(name, "schema.json")
        (home / "config.toml").write_text(SETTINGS.format(home=home, base_url=base_url))
        (home / "instructions.md").write_text("Be short.")
        schema.write_text(json.dumps(SCHEMA))
        command = ["codex", "exec", *OPTIONS, str(schema), "How warm is it in Oslo?"]
        run(command, home, CODEX_HOME=name)


CASES = {"exec": _exec}
