"""Benchmark of our stack and its peers: first token, decode, load and memory, medians and ratios.

    make bench MODELS=… PEERS_PYTHON=…            # everything
    python benchmarks/bench.py --models … --names llama-8m --peers ours-int8 openvino-int8
    python benchmarks/bench.py --models … --context 8192

Each peer runs in a separate process, on the number of processors that --threads sets. All peers get
the same prompts, new ones each round, and take turns: one round of all peers, then the next. Ratios
are computed within a round, as the machine's speed changes from minute to minute. Peers that are
not installed, or lack a model, are left out and named in the report.

A peer's name is KIND-PRECISION, optionally followed by its configuration, which makes it a separate
row: ours-int8:INFERENCE_PRECISION_HINT=bf16,DYNAMIC_QUANTIZATION_GROUP_SIZE=-1
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bars import LONG_CONTEXT
from machine import describe
from measure import Measurement, say
from models import NAMES
from other_work import wait_for_quiet
from peer import Peer, every_peer, parse_peer
from report import Circumstances, document, write_atomically
from results import Scenario, ScenarioResult
from session import Place

HERE = Path(__file__).resolve().parent
LONG_MODEL = "llama-135m"
PROMPT, NEW, NEW_AFTER_LONG = 512, 128, 32


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line; an invalid one ends the program with one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--models", type=Path, required=True, help="folder of models (layout: benchmarks/models.py)"
    )
    add("--names", nargs="+", choices=NAMES, help="models to measure (default: all)")
    add("--peers", nargs="+", type=_peer, metavar="PEER", help="peers to measure (default: all)")
    add("--prompt", type=int, default=PROMPT, help="tokens per prompt")
    add("--new", type=int, help=f"tokens generated: {NEW}, or {NEW_AFTER_LONG} after --context")
    add("--context", type=int, help="measure only with a prompt of this many tokens")
    add("--rounds", type=int, default=3, help="generations per peer")
    add("--starts", type=int, default=3, help="fresh processes per peer")
    add("--threads", type=int, default=2, help="processors per peer")
    add("--timeout", type=float, default=1800.0, help="seconds to wait for a peer's answer")
    add("--patience", type=float, default=5.0, help="seconds to wait for a quiet machine")
    add("--peers-python", default=os.environ.get("PEERS_PYTHON") or sys.executable)
    add("--output", type=Path, default=HERE / "RESULTS.md")
    arguments = parser.parse_args(argv)
    if not arguments.models.is_dir():
        make = f"python benchmarks/make_models.py {arguments.models}"
        parser.error(f"--models: {arguments.models} is not a folder; create it: {make}")
    if min(arguments.rounds, arguments.starts, arguments.threads) < 1:
        parser.error("--rounds, --starts and --threads must be at least 1")
    if (arguments.new is not None and arguments.new < 2) or arguments.prompt < 1:
        parser.error("--new must be at least 2 and --prompt at least 1")
    return arguments


def _peer(text: str) -> Peer:
    try:
        return parse_peer(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def full_scenarios() -> list[Scenario]:
    """Return the scenarios of a full benchmark."""
    short = [Scenario(name, PROMPT, NEW) for name in NAMES]
    return [*short, Scenario(LONG_MODEL, LONG_CONTEXT, NEW_AFTER_LONG)]


def chosen_scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    """Return the scenarios of this run."""
    if arguments.context:
        names = arguments.names or [LONG_MODEL]
        new = arguments.new or NEW_AFTER_LONG
        return [Scenario(name, arguments.context, new) for name in names]
    if arguments.names is None and arguments.prompt == PROMPT and arguments.new is None:
        return full_scenarios()
    names = arguments.names or NAMES
    return [Scenario(name, arguments.prompt, arguments.new or NEW) for name in names]


def left_out(scenarios: Sequence[Scenario], results: Sequence[ScenarioResult]) -> Iterator[str]:
    """Return the parts of a full benchmark that this run leaves out."""
    for scenario in full_scenarios():
        if scenario not in scenarios:
            yield scenario.title
    for result in results:
        measured = {peer.peer.name for peer in result.peers if peer.runs}
        missing = [peer.title for peer in every_peer() if peer.name not in measured]
        if missing:
            yield f"{result.scenario.title}: {', '.join(missing)}"


def measure_limits(arguments: argparse.Namespace, limits: dict[str, float]) -> None:
    """Measure the machine's limits with both interpreters, and keep the best so far."""
    for python in dict.fromkeys((sys.executable, arguments.peers_python)):
        wait_for_quiet(arguments.patience)
        command = [python, str(HERE / "machine_limits.py"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, rate in json.loads(done.stdout).items():
            limits[name] = max(rate, limits.get(name, 0.0))


def versions(results: Sequence[ScenarioResult]) -> list[str]:
    """Return a line for each kind of peer."""
    found: dict[str, str] = {}
    for result in results:
        for peer in result.peers:
            if peer.version:
                found[peer.peer.kind] = peer.version
    return [f"{kind}: {version}" for kind, version in found.items()]


def write_report(
    arguments: argparse.Namespace, results: Sequence[ScenarioResult], limits: dict[str, float]
) -> str:
    """Write the report on the results so far; return its text."""
    protocol = (
        f"{arguments.threads} processors per peer, new random prompts each round, greedy; medians "
        f"(min..max) of {arguments.rounds} rounds in which peers take turns; starts: medians of "
        f"{arguments.starts} fresh processes. Load is the time to open the model after imports; "
        "ours compiles it, and finds it compiled on warm starts. Model files were read from disk "
        "just before. Shares refer to the best measured rates."
    )
    scenarios = chosen_scenarios(arguments)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = [*describe(), *versions(results)]
    absent = list(left_out(scenarios, results))
    pending = [s.title for s in scenarios if s not in [r.scenario for r in results]]
    absent += [f"{title} (not measured yet)" for title in pending]
    text = document(results, Circumstances(date, machine, limits, protocol, absent))
    write_atomically(arguments.output, text)
    return text


def main() -> None:
    """Measure scenario by scenario; the report is rewritten after each."""
    arguments = parse_arguments()
    peers = arguments.peers or every_peer()
    limits: dict[str, float] = {}
    results: list[ScenarioResult] = []
    text = ""
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
        place = Place(
            models=arguments.models.resolve(),
            python=arguments.peers_python,
            our_python=sys.executable,
            threads=arguments.threads,
            timeout=arguments.timeout,
            patience=arguments.patience,
            cache=Path(cache),
        )
        for scenario in chosen_scenarios(arguments):
            folder = place.models / scenario.model
            if not all((folder / name).is_file() for name in ("config.json", "tokenizer.json")):
                make = f"python benchmarks/make_models.py {place.models} {scenario.model}"
                print(f"{folder}: no model there; create it: {make}", file=sys.stderr)
                sys.exit(2)
            say(scenario.title)
            measure_limits(arguments, limits)
            results.append(
                Measurement(scenario, peers, place, arguments.rounds, arguments.starts).run()
            )
            text = write_report(arguments, results, limits)
    print(text)


if __name__ == "__main__":
    main()
