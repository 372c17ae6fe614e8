"""Runs all benchmarks of npuw on a model, and keeps what they said in RESULTS_NPUW.md.

    python benchmarks/npuw_results.py MODEL [--into RESULTS_NPUW.md]

Each program holds its own bars (copied bytes, flat memory, tokens per second of concurrent
requests, the time of a plan) and fails where one is missed; then nothing is kept.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from machine import describe

HERE = Path(__file__).resolve().parent

PROGRAMS: dict[str, tuple[str, ...]] = {
    "Switchover, short prompts, variants": ("bench_npuw.py",),
    "Starts and plans": ("bench_starts.py",),
    "Ways to run a model": ("bench_ways.py",),
    "Concurrent requests": ("bench_batching.py",),
    "Weights that do not fit": ("bench_offload.py", "--budgets", "0", "64MiB"),
}
"""Each with what it is given behind the model."""


def run(program: str, model: Path, *arguments: str) -> str:
    """Run one, in sight; give what it said.

    Raises:
        SystemExit: it failed.
    """
    argv = [sys.executable, "-u", str(HERE / program), str(model), *arguments]
    lines: list[str] = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"{program} failed; nothing is kept")
    return "".join(lines)


def report(model: Path) -> Iterator[str]:
    """The lines of the file."""
    today = datetime.datetime.now(datetime.UTC).date()
    yield "# What npuw costs\n"
    yield f"{today}, {model.name}; made by `make bench-npuw`, which fails where a bar is missed.\n"
    yield "\n".join(f"- {line}" for line in describe())
    for title, (program, *arguments) in PROGRAMS.items():
        print(f"\n{title}\n")
        said = run(program, model, *arguments)
        yield f"\n## {title}\n\n`{program}`\n\n```text\n{said.rstrip()}\n```"


def main() -> None:
    """Run all, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="a folder with a model")
    parser.add_argument("--into", type=Path, default=HERE / "RESULTS_NPUW.md", help="a file")
    given = parser.parse_args()
    text = "\n".join(report(given.model)) + "\n"
    partial = given.into.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(given.into)


if __name__ == "__main__":
    main()
