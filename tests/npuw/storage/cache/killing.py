"""Starts that are killed with -9, in a separate process, because it forks.

``killing.py lines FOLDER`` kills at every single line of the code that writes an entry.
``killing.py starts FOLDER MODEL ROUNDS SEED`` kills complete starts at random moments.

A surviving process then uses the folder, which must be consistent. Prints its observations as JSON;
a failed assertion ends the process.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.protocols import SUBMODEL
from npuw_layer.storage.cache.blob_cache import BlobCache
from npuw_layer.storage.cache.key import CacheKey

KEY = CacheKey({"model": "ab" * 32, "stage.tokens": "1"})
PROGRAM = random.Random(3).randbytes(50_000)
KEPT = {".blob", ".digest"}


def in_child(work: Callable[[], None]) -> int:
    """Fork; the child runs the work and exits with 0, or 1 if the work failed."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"child: {error!r}\n")
        sys.stderr.flush()
        os._exit(1)


def keep(folder: Path) -> bool:
    """Obtain a program as a start does; return whether it had to be compiled."""
    cache = BlobCache(folder, lambda program: [(1000, len(program) - 1000)])
    found = cache.obtain("one", KEY, lambda: PROGRAM)
    assert found.program == PROGRAM, "never a part of a program"
    return found.compiled


def killed_at_line(number: int, folder: Path) -> bool:
    """Store an entry in a child that is killed at its n-th line; False if it has fewer."""

    def work() -> None:
        left = [number]

        def step(frame: FrameType, event: str, _: Any) -> Any:
            if "npuw_layer" not in frame.f_code.co_filename:
                return None
            if event == "line":
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
            return step

        sys.settrace(step)
        keep(folder)

    _, status = os.waitpid(in_child(work), 0)
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def kill_at_every_line(folder: Path) -> dict[str, int]:
    """Kill at each line once; check that a later start cleans up and has the program."""
    seen: Counter[str] = Counter()
    number = 1
    while killed_at_line(number, folder):
        if any(path.suffix not in KEPT for path in folder.iterdir()):
            seen["leftovers"] += 1
        seen["compiled" if keep(folder) else "found"] += 1
        assert {path.suffix for path in folder.iterdir()} <= KEPT, "leftovers are deleted"
        assert not keep(folder), "the entry stays"
        shutil.rmtree(folder)
        folder.mkdir()
        number += 1
    return dict(seen)


class Replaying(StaticCompiler):
    """Compiler that returns recorded programs, so that a start mostly writes them."""

    def __init__(self, programs: dict[str, bytes]) -> None:
        self.programs = programs

    def compile(self, model: Any, config: Any) -> bytes:
        return self.programs[config[SUBMODEL]]


class Recording(StaticCompiler):
    """Compiler that records its programs by stage name."""

    def __init__(self) -> None:
        self.programs: dict[str, bytes] = {}

    def compile(self, model: Any, config: Any) -> bytes:
        program = self.programs[config[SUBMODEL]] = super().compile(model, config)
        return program


def answer(model: str, config: dict[str, Any], compiler: StaticCompiler) -> list[int]:
    """Start a model, and generate a few tokens."""
    request = Core(compiler=compiler).compile_model(model, "NPU", config).create_infer_request()
    said, new = 0, [5, 6, 7]
    tokens: list[int] = []
    for _ in range(4):
        count = len(new)
        found = request.infer(
            {
                "input_ids": np.array([new]),
                "attention_mask": np.ones((1, said + count), np.int64),
                "position_ids": np.arange(said, said + count)[None],
            }
        )
        said += count
        new = [int(found["logits"][0, -1].argmax())]
        tokens += new
    return tokens


def kill_starts(folder: Path, model: str, rounds: int, seed: int) -> dict[str, int]:
    """Kill starts at random moments; check that the next one generates the same tokens."""
    config = {
        "NPUW_LLM_MAX_PROMPT_LEN": 64,
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
        "CACHE_MODE": "OPTIMIZE_SPEED",
        "CACHE_DIR": str(folder),
    }
    recording = Recording()
    # This process runs nothing: the engine's threads would not survive a fork.
    Core(compiler=recording).compile_model(model, "NPU", config | {"CACHE_DIR": ""})
    programs = recording.programs
    told = folder.with_suffix(".json")

    def start(seconds: float = 0) -> None:
        # In processor time, which depends least on the machine's load; 0 is never. An unhandled
        # SIGPROF has the effect of SIGKILL: the process executes nothing more.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        told.write_text(json.dumps(answer(model, config, Replaying(programs))))

    def survive() -> tuple[list[int], float]:
        """Return the tokens of a start, and its processor time."""
        told.unlink(missing_ok=True)
        _, status, used = os.wait4(in_child(start), 0)
        assert status == 0
        return json.loads(told.read_text()), used.ru_utime + used.ru_stime

    expected, _ = survive()
    _, took = survive()  # the first start also loads modules
    draw, seen = random.Random(seed), Counter[str]()
    for _ in range(rounds):
        for path in folder.glob("*.blob"):
            if draw.random() < 0.7:
                path.unlink()
        before = {path.name for path in folder.iterdir()}
        moment = draw.random() * took
        _, status = os.waitpid(in_child(lambda moment=moment: start(moment)), 0)
        assert status in (0, signal.SIGPROF), status
        seen["killed" if status else "done"] += 1
        left = {path for path in folder.iterdir() if path.suffix not in KEPT}
        seen["leftovers"] += bool(left)
        seen["written"] += bool({path.name for path in folder.iterdir()} - before)
        said, took = survive()
        assert said == expected
        assert {path.suffix for path in folder.iterdir()} <= KEPT, "leftovers are deleted"
        assert len(list(folder.glob("*.blob"))) == len(programs) + 1, "and the weights"
    return dict(seen)


if __name__ == "__main__":
    mode, folder, *rest = sys.argv[1:]
    if mode == "lines":
        saw = kill_at_every_line(Path(folder))
    else:
        model, rounds, seed = rest
        saw = kill_starts(Path(folder), model, int(rounds), int(seed))
    sys.stdout.write(json.dumps(saw))
