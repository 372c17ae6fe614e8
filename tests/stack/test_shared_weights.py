"""Shared weights: several processes run one model on one copy, with equal results."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="weights are shared on Linux")

PROMPT = [1, 5, 9, 200, 33]
CONFIG = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
COPIED = {"NPUW_WEIGHTS_BANK": "ours", "NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}

ANSWERS = """
import json, sys
import numpy as np
from npuw_layer import Core

model, config, prompt = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
compiled = Core().compile_model(model, "NPU", config)
request = compiled.create_infer_request()

def generate(count):
    request.reset_state()
    said, new, tokens = 0, prompt, []
    while len(tokens) < count:
        end = said + len(new)
        logits = request.infer({
            "input_ids": np.array([new]),
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(said, end)[None],
        })["logits"]
        said, new = end, [int(logits[0, -1].argmax())]
        tokens += new
    return tokens

def report():
    found = compiled.sharing()
    return found and [found.arena_bytes, found.resident_bytes, found.unshared_bytes,
                      sorted(found.processes)]

for line in sys.stdin:
    print(json.dumps(generate(8) if line.strip() == "generate" else report()), flush=True)
"""


class Process:
    """Process that runs the model."""

    def __init__(self, model: Path, config: dict[str, Any]) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", ANSWERS, str(model), json.dumps(config), json.dumps(PROMPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, what: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(what + "\n")
        self.popen.stdin.flush()

    def hear(self) -> Any:
        assert self.popen.stdout is not None
        return json.loads(self.popen.stdout.readline())

    def asked(self, what: str) -> Any:
        self.tell(what)
        return self.hear()

    def end(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Process]]:
    """Return a function that starts processes, which end with the test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    started: list[Process] = []

    def one(model: Path, **options: Any) -> Process:
        config = CONFIG | {"CACHE_DIR": str(tmp_path / "cache")} | options
        started.append(Process(model, config))
        return started[-1]

    yield one
    for process in started:
        process.end()


@pytest.mark.long
def test_processes_share_one_copy_and_survive_the_death_of_another(start, llama_8m) -> None:
    private = start(llama_8m).asked("generate")
    processes = [start(llama_8m, **COPIED) for _ in range(3)]
    for process in processes:
        process.tell("generate")
    assert [process.hear() for process in processes] == [private] * 3
    arena, resident, unshared, numbers = processes[0].asked("report")
    assert numbers == sorted(process.popen.pid for process in processes)
    assert arena > 10e6
    assert unshared > 2.5 * arena
    assert resident < 1.1 * arena
    victim, *others = processes
    victim.end()
    late = start(llama_8m, **COPIED)
    assert [process.asked("generate") for process in (*others, late)] == [private] * 3
    _, resident, _, numbers = late.asked("report")
    assert numbers == sorted(process.popen.pid for process in (*others, late))
    assert resident < 1.1 * arena


def test_weights_in_mapped_files_are_shared_without_an_arena(start, demo) -> None:
    processes = [start(demo, NPUW_WEIGHTS_BANK="ours") for _ in range(2)]
    for process in processes:
        process.asked("generate")
    arena, resident, unshared, _ = processes[0].asked("report")
    assert arena == 0
    size = (demo / "model.safetensors").stat().st_size
    assert resident < 1.1 * size
    assert unshared > 1.5 * size


@pytest.mark.long
def test_other_models_and_banks_do_not_share_weights(start, llama_8m, tmp_path) -> None:
    """Weights that differ in one value are not shared."""
    other = tmp_path / "other"
    other.mkdir()
    for file in llama_8m.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    weights = other / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 0x40
    weights.write_bytes(content)
    alone = [
        start(llama_8m, **COPIED),
        start(llama_8m, **(COPIED | {"NPUW_WEIGHTS_BANK": "theirs"})),
        start(other, **COPIED),
    ]
    for process in alone:
        assert process.asked("report")[3] == [process.popen.pid]


def test_two_models_of_one_process_share_weights(llama_8m, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    config = CONFIG | COPIED
    one, two = (Core().compile_model(llama_8m, "NPU", config) for _ in range(2))
    inputs = {
        "input_ids": np.array([PROMPT]),
        "attention_mask": np.ones((1, len(PROMPT)), np.int64),
        "position_ids": np.arange(len(PROMPT))[None],
    }
    said = [model.create_infer_request().infer(inputs)["logits"] for model in (one, two)]
    assert np.array_equal(*said)
    report = one.sharing()
    assert report is not None
    assert report.resident_bytes < 1.1 * report.arena_bytes
    assert one.get_property("NPUW_WEIGHTS_BANK") == "ours"


@pytest.mark.matrix
@pytest.mark.parametrize("why", ["no folder", "another device"])
def test_a_model_runs_if_its_weights_cannot_be_shared(
    llama_8m, tmp_path, monkeypatch, caplog, why
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    config = CONFIG | COPIED
    if why == "no folder":
        (tmp_path / "npuw").write_text("in the way")
    else:
        config |= {"NPUW_DEVICES": "CPU"}
    with caplog.at_level(logging.WARNING):
        compiled = Core().compile_model(llama_8m, "NPU", config)
    assert "'ours'" in caplog.text
    assert compiled.sharing() is None
    ids = np.array([PROMPT])
    mask, positions = np.ones((1, len(PROMPT)), np.int64), np.arange(len(PROMPT))[None]
    fed = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    assert np.isfinite(compiled.create_infer_request().infer(fed)["logits"]).all()
