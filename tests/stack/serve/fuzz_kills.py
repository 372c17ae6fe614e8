"""Kills and stops servers at random moments; by hand: ``fuzz_kills.py --times 50``.

Each server starts with the blob cache that the one before left, or without one; it is killed or
stopped while it compiles, loads, is idle, or serves. The next one has to start without a complaint,
and to answer as the first one did.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
from serve_process import ServerProcess, free_port

ROOT = Path(__file__).resolve().parents[3]

_LENGTHS = ("-c", "MAX_PROMPT_LEN=128", "-c", "MIN_RESPONSE_LEN=64")
_BLOCKS = ("-c", "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE=64")
_STOPPED = (0, -signal.SIGTERM)
"""Exit codes after SIGTERM; it ends a process that does not handle signals yet."""
_QUESTION = {"model": "demo", "prompt": "What is a blob?", "max_tokens": 24, "temperature": 0}


def ask(port: int) -> str:
    """Return the answer to the question.

    Raises:
        OSError: there is no answer.
    """
    body, kind = json.dumps(_QUESTION).encode(), {"Content-Type": "application/json"}
    url = f"http://127.0.0.1:{port}/v1/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body, kind), timeout=60) as answer:
        return json.loads(answer.read())["choices"][0]["text"]


class Kills:
    """Servers that share a blob cache.

    Args:
        folder: for the cache and the logs.
        seed: seed of the random moments.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._cache = folder / "cache"
        self._draw = random.Random(seed)
        self._number = 0
        with self._start() as server:
            server.wait_until_ready()
            self._expected = ask(server.port)

    def kill(self, serving: bool) -> str:
        """End a server at a random moment, and return what was done.

        Args:
            serving: whether it serves then; it is checked before. Else it starts.

        Raises:
            AssertionError: the server does not start, answer or end as it should.
        """
        draw = self._draw
        fresh, end = draw.random() < 0.3, draw.choice([signal.SIGKILL, signal.SIGTERM])
        if fresh:
            shutil.rmtree(self._cache, ignore_errors=True)
        with self._start() as server:
            begin = time.monotonic()
            if serving:
                self._check(server)
                for _ in range(6):
                    threading.Thread(target=_try_to_ask, args=(server.port,), daemon=True).start()
                time.sleep(draw.uniform(0, 0.5))
            else:
                time.sleep(draw.uniform(0, 4))
            what = f"{end.name} after {time.monotonic() - begin:.2f} s, "
            what += f"{'fresh' if fresh else 'warm'}, {'serving' if serving else 'starting'}"
            code = server.stop(end)
        assert code == -signal.SIGKILL if end is signal.SIGKILL else code in _STOPPED, (what, code)
        return what

    def check(self) -> None:
        """Check that a server starts without a complaint, answers, and ends."""
        with self._start() as server:
            self._check(server)
            assert server.stop(signal.SIGTERM) == 0

    def _check(self, server: ServerProcess) -> None:
        server.wait_until_ready()
        assert ask(server.port) == self._expected
        lines = self._log.read_text().splitlines()
        assert [line for line in lines if not line.startswith("http")] == []

    def _start(self) -> ServerProcess:
        self._number += 1
        self._log = self._folder / f"{self._number}.log"
        port = free_port()
        words = ["--port", str(port), "--grace", "5", "-c", f"CACHE_DIR={self._cache}"]
        words += [*_LENGTHS, *_BLOCKS]
        command = [sys.executable, "-m", "genai_layer.tools.serve", ROOT / "models/demo", *words]
        return ServerProcess(command, port, "/ready", self._log)


def _try_to_ask(port: int) -> None:
    try:
        ask(port)
    except (OSError, ValueError):
        return  # the server was ended


def main() -> None:
    """Run the fuzzer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(Path(folder), arguments.seed)
        for number in range(arguments.times):
            sys.stdout.write(f"{number + 1}: {kills.kill(serving=number % 2 == 1)}\n")
            sys.stdout.flush()
        kills.check()
        left = sorted(path.name for path in (Path(folder) / "cache").rglob("*"))
        sys.stdout.write(f"{len(left)} files in the cache\n")


if __name__ == "__main__":
    main()
