"""Our stack as a peer: processes, rounds and profile, on the demo model."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from layer_profile import profile, steps_table, verdict
from measure import Measurement
from models import draw_prompts
from other_work import OtherWork
from peer import parse_peer
from results import Scenario
from session import PeerFailed, Place, Session


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache folder that all tests share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(models: Path, cache: Path) -> Place:
    return Place(models, sys.executable, sys.executable, 2, 120.0, 0.0, cache)


@pytest.mark.long
def test_peers_start_in_fresh_processes_and_take_turns(place: Place) -> None:
    peers = [parse_peer("ours-fp16"), parse_peer("ours-int8"), parse_peer("llama.cpp-q4_0")]
    measurement = Measurement(Scenario("llama-8m", 16, 4), peers, place, rounds=2, starts=1)
    ours, no_ir, no_gguf = measurement.run().peers
    assert list(ours.runs) == [0, 1]
    for run in ours.runs.values():
        assert len(run.tokens) == 4
        assert 0 < run.first_seconds < run.seconds
    assert min(ours.starts[0].load_seconds, ours.warm_starts[0].load_seconds) > 0
    assert 50 < ours.starts[0].peak_rss_mb < 2000
    make = "create it: python benchmarks/make_models.py MODELS llama-8m --only"
    assert no_ir.absent == f"no MODELS/ir/llama-8m-int8; {make} ir"
    assert no_gguf.absent == f"no MODELS/gguf/llama-8m-q4_0.gguf; {make} gguf"


def test_a_peer_that_fails_reports_the_reason(place: Place, tmp_path: Path) -> None:
    (tmp_path / "ir" / "llama-1b-fp16").mkdir()
    with pytest.raises(PeerFailed, match="llama-1b-fp16"):
        Session(parse_peer("ours-fp16"), "llama-1b", 16, 4, place)


@pytest.mark.long
def test_a_request_that_fails_ends_the_peer(place: Place) -> None:
    with (
        Session(parse_peer("ours-fp16"), "llama-8m", 16, 4, place) as session,
        pytest.raises(PeerFailed, match="MAX_PROMPT_LEN=64: the prompt has 5000"),
    ):
        session.run([5] * 5000, 4)


def test_prompts_differ_and_are_equal_for_equal_seeds(demo: Path) -> None:
    prompts = draw_prompts(demo, 100, 3, seed=1)
    assert len({tuple(prompt) for prompt in prompts}) == 3
    assert prompts == draw_prompts(demo, 100, 3, seed=1)
    assert all(10 <= token < 2048 for prompt in prompts for token in prompt)


def test_the_profile_covers_every_layer_and_no_compilation(demo: Path) -> None:
    prefill, decode = profile(demo, draw_prompts(demo, 64, 3, seed=1), 5, {})
    assert len(prefill) == 2
    assert len(decode) == 2 * 4
    for step in (*prefill, *decode):
        assert min(step.genai, step.npuw, step.driver, step.device) > 0
        assert step.compiler == 0
        parts = step.genai + step.npuw + step.compiler + step.driver + step.device
        assert step.total == pytest.approx(parts)
    shown = steps_table("Decode", decode)
    assert [line.split()[0] for line in shown.splitlines()[1:]] == [
        *("genai", "npuw", "compiler", "driver", "device", "all")
    ]
    assert "a token (bar: under 1 ms, " in verdict(decode)


def test_work_of_other_processes_is_counted_and_the_measured_ones_is_not() -> None:
    spin = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"
    with subprocess.Popen([sys.executable, "-c", spin]) as other:
        try:
            alone, with_it = OtherWork(), OtherWork(other.pid)
            time.sleep(0.5)
            others, rest = alone.share(), with_it.share()
        finally:
            other.kill()
    processors = os.cpu_count() or 1
    # Independent of other load, the difference is the process's share of one processor.
    assert 0 < others - rest <= 1.2 / processors
