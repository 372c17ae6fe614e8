"""Our stack beside its peers: first token, decode, load and memory, as medians and ratios.

    make bench MODELS=… PEERS_PYTHON=…            # everything
    python benchmarks/bench.py --models … --names llama-8m --peers ours-int8 openvino-int8
    python benchmarks/bench.py --models … --context 8192

Each peer runs in a process of its own, on as many processors as --threads says. All get the same
prompts, a fresh one each round, and take turns: a round of everybody, then the next. Ratios are
taken within a round, as the machine's speed changes from minute to minute. A peer that is not
installed, or whose model has not been made, is left out, and the report says so.

A peer's name is KIND-PRECISION, and may be followed by what it is configured with, which makes it a
row of its own: ours-int8:INFERENCE_PRECISION_HINT=bf16,DYNAMIC_QUANTIZATION_GROUP_SIZE=128
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
    """Read the command line; wrong names end the program with one line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--models", type=Path, required=True, help="folder of models; benchmarks/models.py says how"
    )
    add("--names", nargs="+", choices=NAMES, help="models to measure; all")
    add("--peers", nargs="+", type=_peer, metavar="PEER", help="who takes part; all")
    add("--prompt", type=int, default=PROMPT, help="tokens of a prompt")
    add("--new", type=int, help=f"tokens generated: {NEW}, or {NEW_AFTER_LONG} after --context")
    add("--context", type=int, help="measure with so long a prompt alone")
    add("--rounds", type=int, default=3, help="generations of each peer")
    add("--starts", type=int, default=3, help="fresh processes of each peer")
    add("--threads", type=int, default=2, help="processors that each peer may use")
    add("--timeout", type=float, default=1800.0, help="seconds that a peer may take to answer")
    add("--patience", type=float, default=5.0, help="seconds to wait for a quiet machine")
    add("--peers-python", default=os.environ.get("PEERS_PYTHON") or sys.executable)
    add("--output", type=Path, default=HERE / "RESULTS.md")
    arguments = parser.parse_args(argv)
    if not arguments.models.is_dir():
        make = f"python benchmarks/make_models.py {arguments.models}"
        parser.error(f"--models: {arguments.models} is no folder; make it: {make}")
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
    """What a whole benchmark measures."""
    short = [Scenario(name, PROMPT, NEW) for name in NAMES]
    return [*short, Scenario(LONG_MODEL, LONG_CONTEXT, NEW_AFTER_LONG)]


def chosen_scenarios(arguments: argparse.Namespace) -> list[Scenario]:
    """What this run measures."""
    if arguments.context:
        names = arguments.names or [LONG_MODEL]
        new = arguments.new or NEW_AFTER_LONG
        return [Scenario(name, arguments.context, new) for name in names]
    if arguments.names is None and arguments.prompt == PROMPT and arguments.new is None:
        return full_scenarios()
    names = arguments.names or NAMES
    return [Scenario(name, arguments.prompt, arguments.new or NEW) for name in names]


def left_out(scenarios: Sequence[Scenario], results: Sequence[ScenarioResult]) -> Iterator[str]:
    """What a whole benchmark would have in addition."""
    for scenario in full_scenarios():
        if scenario not in scenarios:
            yield scenario.title
    for result in results:
        measured = {peer.peer.name for peer in result.peers if peer.runs}
        missing = [peer.title for peer in every_peer() if peer.name not in measured]
        if missing:
            yield f"{result.scenario.title}: {', '.join(missing)}"


def measure_limits(arguments: argparse.Namespace, limits: dict[str, float]) -> None:
    """Measure the machine's limits with either interpreter, and keep the best so far."""
    for python in dict.fromkeys((sys.executable, arguments.peers_python)):
        wait_for_quiet(arguments.patience)
        command = [python, str(HERE / "machine_limits.py"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, rate in json.loads(done.stdout).items():
            limits[name] = max(rate, limits.get(name, 0.0))


def versions(results: Sequence[ScenarioResult]) -> list[str]:
    """A line for each kind of peer."""
    found: dict[str, str] = {}
    for result in results:
        for peer in result.peers:
            if peer.version:
                found[peer.peer.kind] = peer.version
    return [f"{kind}: {version}" for kind, version in found.items()]


def write_report(
    arguments: argparse.Namespace, results: Sequence[ScenarioResult], limits: dict[str, float]
) -> str:
    """Write what has been measured so far; give the text."""
    protocol = (
        f"{arguments.threads} processors for each peer, fresh random prompts, greedy; medians "
        f"(min..max) of {arguments.rounds} rounds in which peers take turns; starts: medians of "
        f"{arguments.starts} fresh processes. Load is the time to open the model after imports; "
        "ours compiles it, and finds it compiled when warm. Model files were read from the disk "
        "just before. Shares are of the best rates measured."
    )
    scenarios = chosen_scenarios(arguments)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = [*describe(), *versions(results)]
    absent = list(left_out(scenarios, results))
    pending = [s.title for s in scenarios if s not in [r.scenario for r in results]]
    absent += [f"{title} (was still to come)" for title in pending]
    text = document(results, Circumstances(date, machine, limits, protocol, absent))
    write_atomically(arguments.output, text)
    return text


def main() -> None:
    """Measure scenario by scenario; the report is written anew after each."""
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
                print(f"no model in {folder}; make it: {make}", file=sys.stderr)
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
