"""Requests of OpenAI's clients as they ship, recorded in tests/genai/serve/clients.

Each module of tools/client_requests is one client: its cases send requests at a server that answers
by rule and notes what arrives. A file has the requests of one case, in their order.

Needs the clients, each of which is left out if it is missing:

    pip install openai litellm instructor pydantic-ai openai-agents lm-eval anthropic
    python tools/record_client_requests.py            # all, or the modules that are named
"""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from client_requests.server import RecordingServer

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "tests" / "genai" / "serve" / "clients"
CLIENTS = sorted(
    path.stem
    for path in (ROOT / "tools" / "client_requests").glob("*.py")
    if path.stem not in ("__init__", "server", "replies")
)


def record(name: str) -> None:
    """Record the cases of one client, a file each: ``NAME-CASE.json``."""
    module = importlib.import_module(f"client_requests.{name}")
    client = f"{module.CLIENT} {version_of(module)}"
    for case, send in module.CASES.items():
        with RecordingServer(getattr(module, "REPLIES", {})) as server:
            try:
                send(server.base_url)
            except Exception as error:  # the requests count, whatever the client says of a reply
                print(f"{name}-{case}: {type(error).__name__}: {error}")
        if not server.requests:
            raise SystemExit(f"{name}-{case}: sent nothing")
        write(f"{name}-{case}", [{"client": client, **one} for one in server.requests])


def version_of(module: Any) -> str:
    """Return the version of a client.

    Raises:
        PackageNotFoundError: the client is not installed.
    """
    return module.version() if hasattr(module, "version") else version(module.DISTRIBUTION)


def write(name: str, requests: list[dict[str, Any]]) -> None:
    """Write the requests of a case."""
    text = json.dumps(requests, indent=1, ensure_ascii=False, sort_keys=False)
    (TARGET / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {len(requests)} requests")


def main() -> None:
    """Record the clients that are named, or all that are installed."""
    for name in sys.argv[1:] or CLIENTS:
        try:
            record(name)
        except (ModuleNotFoundError, PackageNotFoundError) as error:
            print(f"{name}: left out: {error}")


if __name__ == "__main__":
    main()
