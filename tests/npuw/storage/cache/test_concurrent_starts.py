"""Several processes start with one empty cache: each program is compiled once, the others wait."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("fcntl")

START = """
import json, logging, sys, time
from pathlib import Path
from typing import Any
import numpy as np
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler

model, cache, gate = sys.argv[1:]
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
compiled = 0

class Gated(StaticCompiler):
    def compile(self, model: Any, config: Any) -> bytes:
        global compiled
        compiled += 1
        while gate and not Path(gate).exists():
            time.sleep(0.01)
        return super().compile(model, config)

print("ready", flush=True)
sys.stdin.readline()
lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
request = Core(Gated()).compile_model(model, "NPU", lengths | {"CACHE_DIR": cache})
ids = np.array([[5, 6, 7]])
inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "position_ids": ids - 5}
logits = request.create_infer_request().infer(inputs)["logits"]
print(json.dumps({"compiled": compiled, "said": logits.tobytes().hex()}))
"""


@dataclass
class Starting:
    """A process that starts, and its output so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def go(self) -> None:
        """Start when all processes are ready."""
        self.until("ready")
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def until(self, text: str) -> None:
        """Wait until the log contains a text."""
        deadline = time.monotonic() + 120
        while not any(text in line for line in list(self.lines)):
            assert time.monotonic() < deadline, f"never logged {text!r}: {self.lines[-9:]}"
            time.sleep(0.01)

    def result(self) -> dict[str, object]:
        self.process.wait(240)
        self._reader.join()
        assert self.process.returncode == 0, self.lines[-20:]
        return json.loads(self.lines[-1])


Begin = Callable[..., Starting]


@pytest.fixture
def begin(tiny, tmp_path) -> Iterator[Begin]:
    """Create processes that wait for their start."""
    begun: list[subprocess.Popen[str]] = []

    def make(gate: Path | str = "") -> Starting:
        argv = [sys.executable, "-c", START, str(tiny), str(tmp_path / "cache"), str(gate)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        begun.append(subprocess.Popen(argv, text=True, **pipes))
        return Starting(begun[-1])

    yield make
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_later_processes_wait_for_the_compiling_one(begin: Begin, tmp_path) -> None:
    gate = tmp_path / "gate"
    first = begin(gate)
    first.go()
    first.until("compiling")
    others = [begin() for _ in range(2)]
    for other in others:
        other.go()
        other.until(f"waiting for process {first.process.pid}, which is compiling it")
    gate.touch()
    results = [one.result() for one in (first, *others)]
    assert sum(result["compiled"] for result in results) == 3, "prefill, generate and the LM head"
    assert len({result["said"] for result in results}) == 1
    assert any("from cache, waited" in line for line in others[0].lines)


@pytest.mark.long
def test_a_waiting_process_takes_over_from_a_killed_one(begin: Begin, tmp_path) -> None:
    first = begin(tmp_path / "never")
    first.go()
    first.until("compiling")
    others = [begin() for _ in range(2)]
    for other in others:
        other.go()
        other.until(f"waiting for process {first.process.pid}")
    first.process.kill()
    results = [other.result() for other in others]
    assert sum(result["compiled"] for result in results) == 3
    assert len({result["said"] for result in results}) == 1


@pytest.mark.long
def test_processes_that_start_together_compile_each_program_once(begin: Begin) -> None:
    starts = [begin() for _ in range(4)]
    for one in starts:
        one.until("ready")
    for one in starts:
        one.go()
    results = [one.result() for one in starts]
    assert sum(result["compiled"] for result in results) == 3
    assert len({result["said"] for result in results}) == 1


def test_after_a_failed_compilation_the_next_process_tries(halves, key, tmp_path, caplog) -> None:
    caplog.set_level(logging.INFO)
    cache = halves(tmp_path)

    def fail() -> bytes:
        raise MemoryError

    with pytest.raises(MemoryError):
        cache.obtain("one", key, fail)
    assert not list(tmp_path.iterdir())
    assert cache.obtain("one", key, lambda: b"program!").compiled


def test_the_log_has_the_origin_of_each_program(start, tiny, tmp_path, caplog) -> None:
    caplog.set_level(logging.INFO)
    start(tiny, tmp_path)
    assert "prefill_64 (1 of 3): compiling: no entry exists" in caplog.text
    assert "generate_128 (2 of 3): compiled in " in caplog.text
    assert "lm_head (3 of 3): compiled in " in caplog.text
    caplog.clear()
    start(tiny, tmp_path)
    assert "prefill_64 (1 of 3): from cache in " in caplog.text
    assert "3 loaded from cache in " in caplog.text
    (entry, *_) = tmp_path.glob("*.blob")
    entry.write_bytes(entry.read_bytes()[:-1])
    caplog.clear()
    start(tiny, tmp_path)
    assert f"{entry} is not used: " in caplog.text
    assert "it is compiled again" in caplog.text
    start(tiny, tmp_path, CACHE_DIR="")
    assert "compiling: CACHE_DIR is not set" in caplog.text
