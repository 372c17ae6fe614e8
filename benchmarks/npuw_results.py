"""All benchmarks of npuw on one model, with their output stored in RESULTS_NPUW.md.

    python benchmarks/npuw_results.py MODEL [--into RESULTS_NPUW.md]

Each program checks its own bars (copied bytes, constant memory, tokens per second of concurrent
requests, time of a plan) and fails if one is missed; then no file is written.
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
"""Programs with their arguments after the model."""


def run(program: str, model: Path, *arguments: str) -> str:
    """Run a program, print its output, and return it.

    Raises:
        SystemExit: the program failed.
    """
    argv = [sys.executable, "-u", str(HERE / program), str(model), *arguments]
    lines: list[str] = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"{program} failed; no file is written")
    return "".join(lines)


def report(model: Path) -> Iterator[str]:
    """Yield the lines of the file."""
    today = datetime.datetime.now(datetime.UTC).date()
    yield "# Costs of npuw\n"
    yield f"{today}, {model.name}; written by `make bench-npuw`, which fails if a bar is missed.\n"
    yield "\n".join(f"- {line}" for line in describe())
    for title, (program, *arguments) in PROGRAMS.items():
        print(f"\n{title}\n")
        said = run(program, model, *arguments)
        yield f"\n## {title}\n\n`{program}`\n\n```text\n{said.rstrip()}\n```"


def main() -> None:
    """Run all programs, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="folder with a model")
    parser.add_argument("--into", type=Path, default=HERE / "RESULTS_NPUW.md", help="output file")
    given = parser.parse_args()
    text = "\n".join(report(given.model)) + "\n"
    partial = given.into.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(given.into)


if __name__ == "__main__":
    main()
