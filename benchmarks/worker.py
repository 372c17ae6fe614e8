"""Process of one peer: opens a model, then generates once per line of JSON on standard input.

A line with a task calls the open model's method of that name with the line's other entries.
``session.py`` starts it. Only answers go to standard output; output of libraries goes to standard
error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Channel:
    """Standard output, redirected to standard error for all other writers."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def send(self, **answer: Any) -> None:
        """Write a line."""
        self._file.write(json.dumps(answer) + "\n")
        self._file.flush()


def peak_rss_mb() -> float:
    """Return the peak resident memory since the program began, in MB (10^6 bytes).

    VmHWM is used, as ru_maxrss is inherited from the parent process.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) * 1024 / 1e6


def outcome(method: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a method's answer, or the reason for which it refused its arguments."""
    try:
        return {"answer": method(**arguments)}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}


def serve(channel: Channel, job: dict[str, Any]) -> None:
    """Open the job's model, report it, and answer requests until the input ends."""
    began = time.perf_counter()
    try:
        peers = importlib.import_module("peers")
        module = importlib.import_module(f"peers.{job['module']}")
    except ImportError as error:
        channel.send(missing=str(error))
        return
    imported = time.perf_counter()
    opened = module.open_model(Path(job["path"]), peers.Lengths(**job["lengths"]), job["config"])
    loaded = time.perf_counter()
    channel.send(
        import_seconds=imported - began,
        load_seconds=loaded - imported,
        version=module.version(),
        peak_rss_mb=peak_rss_mb(),
    )
    for line in sys.stdin:
        question = json.loads(line)
        if task := question.pop("task", ""):
            channel.send(**outcome(getattr(opened, task), question))
            continue
        began = time.perf_counter()
        first, tokens = opened.generate(question["prompt"], question["new"])
        seconds = time.perf_counter() - began
        if len(tokens) != question["new"]:
            raise RuntimeError(f"{len(tokens)} tokens were generated instead of {question['new']}")
        channel.send(first_seconds=first, seconds=seconds, tokens=tokens, peak_rss_mb=peak_rss_mb())


def main() -> None:
    """Serve requests; an error is the last answer."""
    channel = Channel()
    job = json.loads(sys.argv[1])
    # Set before any library counts the processors.
    os.sched_setaffinity(0, job["processors"])
    try:
        serve(channel, job)
    except Exception as error:
        channel.send(failed=f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
