"""Sweeps of models: every length, turn, request, row, sampler and option beside its neighbour.

    make bench-sweep                            # the demo model, in one to two minutes
    make bench-sweep MODEL="folder folder …"    # real models; IRs are compared to OpenVINO GenAI

A figure of 1.5 times its neighbour's is marked. All figures of a model replace its section in
RESULTS_SWEEP.md, and their summary the one in docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from machine import describe
from measure import say
from session import PeerFailed, Place
from sweep.document import END, part, section, summary, update
from sweep.every import SWEEPS
from sweep.figures import Table
from sweep.subject import BRIEF, FULL, Subject

HERE = Path(__file__).resolve().parent

_DAY = 24 * 60 * 60


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; an invalid one ends the program with one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("models", nargs="+", type=Path, help="folders with a model")
    add("--only", nargs="+", choices=SWEEPS, help="sweeps to run; writes no file")
    add("--brief", action="store_true", help="shorter prompts and fewer rounds, for small models")
    add("--once", action="store_true", help="one round, to see that sweeps run; writes no file")
    add("--no-report", action="store_true", help="print the figures, and write no file")
    add("--threads", type=int, default=2, help="processors per peer, at least 1")
    add("--timeout", type=float, default=1800.0, help="seconds to wait for a peer's answer")
    add("--peers-python", default=os.environ.get("PEERS_PYTHON") or sys.executable)
    add("--output", type=Path, default=HERE / "RESULTS_SWEEP.md")
    add("--summary", type=Path, default=HERE.parent / "docs" / "performance.md")
    arguments = parser.parse_args(argv)
    if arguments.threads < 1:
        parser.error(f"--threads {arguments.threads}: pass 1 or more")
    if not 1 <= arguments.timeout <= _DAY:
        parser.error(f"--timeout {arguments.timeout:g}: pass 1 to {_DAY} seconds")
    arguments.no_report = arguments.no_report or arguments.once or arguments.only is not None
    for folder in arguments.models:
        if not (folder / "config.json").is_file():
            parser.error(f"{folder}: no model there; pass a folder with config.json and weights")
    for document in () if arguments.no_report else (arguments.output, arguments.summary):
        if not (document.is_file() and END in document.read_text(errors="replace")):
            parser.error(f"{document}: no place for a section; add the line {END}")
    return arguments


def run_sweeps(subject: Subject, names: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of some sweeps, and print each."""
    for name in names:
        say(name)
        found = SWEEPS[name](subject)
        print(part(found), end="\n\n", flush=True)
        yield found


def main() -> None:
    """Run the sweeps; an error ends the program with one line."""
    try:
        _run(parse_arguments())
    except (PeerFailed, OSError, ValueError) as error:
        sys.exit(f"bench_sweep: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _run(arguments: argparse.Namespace) -> None:
    """Run the sweeps model by model; documents are written after each."""
    effort = BRIEF if arguments.brief else FULL
    if arguments.once:
        effort = replace(effort, rounds=1, again=1)
    for folder in arguments.models:
        with tempfile.TemporaryDirectory(prefix="sweep-") as cache:
            place = Place(
                models=folder,
                python=arguments.peers_python,
                our_python=sys.executable,
                threads=arguments.threads,
                timeout=arguments.timeout,
                patience=0.0,
                cache=Path(cache),
            )
            name = folder.resolve().name
            say(name)
            with Subject(folder.resolve(), place, effort) as subject:
                tables = [*run_sweeps(subject, arguments.only or [*SWEEPS])]
                today = datetime.now(UTC).strftime("%Y-%m-%d")
                circumstances = [today, describe()[0], *subject.versions]
        if not arguments.no_report:
            update(arguments.output, name, section(name, circumstances, tables))
            update(arguments.summary, name, summary(name, circumstances, tables))


if __name__ == "__main__":
    main()
