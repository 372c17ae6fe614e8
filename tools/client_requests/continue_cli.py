"""Continue's program for the terminal: streamed chats with functions.

Needs ``npm install @continuedev/cli``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from client_programs import run, version_of

CLIENT, DISTRIBUTION = "continue", "@continuedev/cli"
SETTINGS = """\
name: npu
version: 1.0.0
schema: v1
models:
  - name: toy
    provider: openai
    model: toy
    apiBase: {base_url}
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
"""
LONG = ("Bash", "Edit", "AskQuestion", "Skills")
"""Tools with long descriptions, which are left out."""


def version() -> str:
    """Return the version of the program."""
    return version_of("cn", DISTRIBUTION)


def _print(base_url: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        settings = Path(name, "config.yaml")
        settings.write_text(SETTINGS.format(base_url=base_url))
        excluded = [option for tool in LONG for option in ("--exclude", tool)]
        command = ["cn", "-p", "--config", str(settings), *excluded, "How warm is it in Oslo?"]
        run(command, Path(name), CONTINUE_GLOBAL_DIR=name, CONTINUE_TELEMETRY_ENABLED="0")


CASES = {"print": _print}
