"""Real servers with the demo model on the simulated NPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
LENGTHS = ("-c", "MAX_PROMPT_LEN=128", "-c", "MIN_RESPONSE_LEN=512")
QUESTIONS = ("What is an NPU?", "What is a KV cache?", "What is a blob?", "Hello!")
PROMPTS = [f"<|im_start|>user\n{one}<|im_end|>\n<|im_start|>assistant\n" for one in QUESTIONS]

Serve = Start = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="session")
def serve_load(load_module: Callable[[Path], Any]) -> Any:
    """Module of clients."""
    return load_module(ROOT / "benchmarks" / "serve_load.py")


@pytest.fixture(scope="session")
def start_demo(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Start:
    """Return a function that starts a server with the demo model; see ``ServerProcess``.

    It takes the path that answers 200 once the server is ready, and the file descriptor that
    receives the output.
    """
    processes = load_module(ROOT / "benchmarks" / "serve_process.py")
    folder = tmp_path_factory.mktemp("served")

    def start(
        ready: str, output: int | None = None, *options: str, handles: int | None = None
    ) -> AbstractContextManager[Any]:
        port = processes.free_port()
        words = ["--port", str(port), "-c", f"CACHE_DIR={folder / 'cache'}", *LENGTHS, *options]
        command = [sys.executable, "-m", "genai_layer.tools.serve", ROOT / "models/demo", *words]
        return processes.ServerProcess(
            command, port, ready, folder / f"{port}.log", output, handles
        )

    return start


@pytest.fixture(scope="session")
def serve_demo(start_demo: Start) -> Serve:
    """Return a function that starts a server with the demo model, and waits until it is ready."""

    @contextmanager
    def start(*options: str, handles: int | None = None) -> Iterator[Any]:
        with start_demo("/ready", None, *options, handles=handles) as server:
            server.wait_until_ready()
            yield server

    return start
