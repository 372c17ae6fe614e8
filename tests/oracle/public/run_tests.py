"""Counts of openvino_genai's own Python tests that pass with genai_layer in its place.

Each file of a checkout's ``tests/python_tests`` runs with the real package; then the tests that
pass run again with ``swapped/openvino_genai.py`` before it on the path. The models are those of
``make_hub.py``, so tests of others fail with the real package and do not count. With --limit, nor
do the tests that the real package does not reach in these seconds; * marks such files.

Run by a Python that has this project's packages, openvino_genai, and the tests' requirements
(the checkout's ``tests/python_tests/requirements.txt``, with datasets 3.6):

    python tests/oracle/public/make_hub.py HUB
    python tests/oracle/public/run_tests.py CHECKOUT HUB [FILE …] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = (
    *("test_generation_config", "test_llm_pipeline_static", "test_llm_pipeline", "test_sampling"),
    *("test_tokenizer", "test_text_streamer", "test_parsers", "test_structured_output", "test_rag"),
    *("test_vlm_pipeline", "test_whisper_pipeline", "test_whisper_pipeline_static"),
    *("test_stateful_speculative_decoding", "test_continuous_batching"),
)
ENDLESS = ("test_sampling.py::test_basic_stop_criteria[stop_token_ids]",)
"""Tests that never end with a random model: nothing but a stop token limits their texts."""


@dataclass(frozen=True)
class Run:
    """Results of one file with one package.

    Attributes:
        passed: ids of the tests that pass.
        failures: first lines of failures, by id of the test.
        complete: False if the time ended before the file.
    """

    passed: frozenset[str]
    failures: dict[str, str]
    complete: bool = True


def environment(hub: Path, swapped: bool) -> dict[str, str]:
    """Return the environment of a run; exported models are kept beside the hub."""
    folders = [HERE / "plugins", *[HERE / "swapped"] * swapped]
    paths = [*map(str, folders), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return os.environ | {
        "HF_HOME": str(hub),
        "HF_HUB_OFFLINE": "1",
        "OV_CACHE": str(hub / "exported"),
        # The tests run optimum-cli.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TOKENIZERS_PARALLELISM": "false",
    }


def run(
    tests: Path,
    name: str,
    hub: Path,
    selected: frozenset[str] | None = None,
    limit: float | None = None,
) -> Run:
    """Run a test file with the real package, or selected tests of it with genai_layer.

    A crash of the process fails one test, and the others go on.

    Args:
        tests: folder of the test files.
        name: name of the file, without .py.
        hub: folder written by ``make_hub.py``.
        selected: ids of the tests to run with genai_layer; None runs all with the real package.
        limit: seconds; None for no limit.
    """
    package = "openvino_genai" if selected is None else "genai_layer"
    record = hub / "reports" / f"{name}-{package}.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text("")
    env, complete = environment(hub, selected is not None), True
    env["RECORDED_TESTS"] = str(record)
    options = ["-q", "-n", "1", "-o", f"cache_dir={hub / 'pytest'}", "-p", "recorded_tests"]
    options += [f"--deselect={test}" for test in ENDLESS]
    if selected is not None:
        listed = record.with_suffix(".selected")
        listed.write_text(json.dumps(sorted(selected)), encoding="utf-8")
        env["SELECTED_TESTS"] = str(listed)
        options += ["-p", "selected_tests"]
    with (
        record.with_suffix(".txt").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, f"{name}.py"],
            cwd=tests,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            complete = False
            os.killpg(process.pid, signal.SIGKILL)
    return replace(read(record), complete=complete)


def read(record: Path) -> Run:
    """Read the results that ``plugins/recorded_tests.py`` has written."""
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    failures = {
        line["test"]: "".join(line["failure"])[:200]
        for line in lines
        if line["failure"] is not None
    }
    return Run(frozenset(line["test"] for line in lines) - failures.keys(), failures)


def main() -> None:
    """Run the files, and print a table and the tests that only the real package passes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="checkout of openvino.genai")
    parser.add_argument("hub", type=Path, help="folder written by make_hub.py")
    parser.add_argument("files", nargs="*", default=FILES, help="names of test files, without .py")
    parser.add_argument("--limit", type=float, help="seconds for a file with the real package")
    arguments = parser.parse_args()
    tests, hub = arguments.checkout.resolve() / "tests" / "python_tests", arguments.hub.resolve()
    total, agreed = 0, 0
    print("| file | real package | genai_layer | |\n|---|---|---|---|")
    missed: dict[str, str] = {}
    for name in arguments.files:
        real = run(tests, name, hub, limit=arguments.limit)
        ours = run(tests, name, hub, real.passed)
        both = real.passed & ours.passed
        total, agreed = total + len(real.passed), agreed + len(both)
        print(row(name + " *" * (not real.complete), len(real.passed), len(both)), flush=True)
        reasons = ours.failures | {"": "; ".join(set(ours.failures.values()) if not both else [])}
        missed |= {test: reasons.get(test, reasons[""]) for test in real.passed - both}
    print(row("total", total, agreed))
    for test, reason in sorted(missed.items()):
        print(f"\n{test}\n    {reason}")


def row(name: str, real: int, ours: int) -> str:
    """Return a row of the table."""
    share = f"{ours / real:.0%}" if real else "–"
    return f"| {name} | {real} | {ours} | {share} |"


if __name__ == "__main__":
    main()
