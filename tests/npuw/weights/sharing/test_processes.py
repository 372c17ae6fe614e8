"""One arena of weights for several processes, any of which may be killed at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("weights are shared on Linux", allow_module_level=True)

from npuw_layer.errors import SharingError
from npuw_layer.weights.sharing.arena import join_arena
from npuw_layer.weights.sharing.meeting import locked_meeting
from npuw_layer.weights.stored_weights import ALIGNMENT, identify, plan_layout

IDENTITY = "0123456789abcdef" * 2
SCRIPT = Path(__file__).with_name("sharing_process.py")


class Process:
    """A process that shares the arena."""

    def __init__(self, seconds_per_weight: float = 0) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, str(SCRIPT), IDENTITY, str(seconds_per_weight)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.copied: list[str] = []
        """Names of the weights that the process copied itself."""

    def hear(self) -> Any:
        """Return the process's next message; None if it has ended."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        return json.loads(line) if line else None

    def has_joined(self) -> bool:
        """Wait until it has the arena; return whether all weights are right."""
        while "joined" not in (said := self.hear()):
            self.copied.append(said["copied"])
        return said["joined"]

    def asked(self, what: str) -> Any:
        assert self.popen.stdin is not None
        self.popen.stdin.write(what + "\n")
        self.popen.stdin.flush()
        return self.hear()

    def kill(self) -> None:
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()

    def end(self) -> None:
        self.kill()
        for pipe in (self.popen.stdin, self.popen.stdout):
            assert pipe is not None
            pipe.close()


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes, which end with the test."""
    started: list[Process] = []

    def one(seconds_per_weight: float = 0) -> Process:
        started.append(Process(seconds_per_weight))
        return started[-1]

    yield one
    for process in started:
        process.end()


def test_weights_are_placed_in_order_and_aligned() -> None:
    layout = plan_layout({"a": 100, "b": 1, "c": 64})
    places = [(slot.offset, slot.nbytes) for slot in layout.slots.values()]
    assert places == [(0, 100), (128, 1), (192, 64)]
    assert layout.nbytes == 256
    assert plan_layout({}).nbytes == ALIGNMENT


def test_arenas_of_different_banks_models_or_weights_have_different_names() -> None:
    one = plan_layout({"a": 100, "b": 1})
    names = [
        identify("bank", "model", one),
        identify("other", "model", one),
        identify("bank", "other", one),
        identify("bank", "model", plan_layout({"a": 100, "b": 2})),
        identify("bank", "model", plan_layout({"b": 1, "a": 100})),
        identify("bankm", "odel", one),
    ]
    assert len(set(names)) == len(names)
    assert identify("bank", "model", plan_layout({"a": 100, "b": 1})) == names[0]


def test_one_process_copies_and_all_have_the_weights_once(start, here) -> None:
    processes = [start() for _ in range(3)]
    assert all(process.has_joined() for process in processes)
    copied = [len(process.copied) for process in processes]
    assert sorted(copied) == [0, 0, len(here.LAYOUT.slots)]
    numbers, resident, unshared = processes[0].asked("report")
    assert numbers == sorted(process.popen.pid for process in processes)
    once = here.LAYOUT.nbytes
    assert unshared >= 3 * once, "each process has read all weights"
    assert 0.99 * once < resident < 1.01 * once, "memory holds them once"  # kB are rounded


def test_shared_weights_cannot_be_written(here) -> None:
    arena = here.join(IDENTITY)
    with pytest.raises(ValueError, match="read-only"):
        arena.memory.data[0] = 1
    arena.close()


@pytest.mark.matrix
@pytest.mark.parametrize("how", ["leave", "kill"])
def test_the_others_continue_and_serve_after_the_creator_leaves(start, how) -> None:
    maker = start()
    assert maker.has_joined()
    follower = start()
    assert follower.has_joined()
    if how == "kill":
        maker.kill()
    else:
        maker.asked("leave")
    assert follower.asked("check")
    late = start()
    assert late.has_joined()
    assert not late.copied
    assert late.asked("report")[0] == sorted(p.popen.pid for p in (follower, late))


def test_another_process_copies_after_the_creator_dies_during_the_copy(start, here) -> None:
    """The second one waits, and copies all weights: no process sees a half-copied arena."""
    maker = start(0.05)
    while maker.hear() != {"copied": "weight 7"}:
        pass
    waiting = start()
    maker.kill()
    assert waiting.has_joined()
    assert len(waiting.copied) == len(here.LAYOUT.slots)


def test_a_failed_copy_leaves_nothing_behind(here, folder) -> None:
    def fail(arena: np.ndarray) -> None:
        arena[:] = 1
        raise KeyError("no such weight")

    with pytest.raises(KeyError):
        join_arena(here.new_device(), IDENTITY, here.LAYOUT, fail)
    assert not folder.exists()
    arena = here.join(IDENTITY)
    assert here.is_right(arena.memory.data)
    arena.close()


def test_the_last_process_removes_the_folder(start, folder) -> None:
    one, two = start(), start()
    assert one.has_joined()
    assert two.has_joined()
    assert len(list(folder.iterdir())) == 2
    one.asked("leave")
    assert len(list(folder.iterdir())) == 1
    two.asked("leave")
    assert not folder.exists()


def test_the_next_process_removes_sockets_of_killed_ones(start, here, folder) -> None:
    for _ in range(3):
        process = start()
        assert process.has_joined()
        process.kill()
        assert len(list(folder.iterdir())) == 1
    arena = here.join(IDENTITY)
    assert here.is_right(arena.memory.data)
    assert len(list(folder.iterdir())) == 1
    arena.close()
    assert not folder.exists()


def test_an_unreferenced_arena_is_left(here, folder) -> None:
    arena = here.join(IDENTITY)
    assert folder.exists()
    del arena
    assert not folder.exists()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_processes_killed_at_any_moment_do_not_affect_others(start, here, folder, seed) -> None:
    """One of three processes is killed per round, while it starts, waits, copies or serves."""
    draw = random.Random(seed)
    living = [start(draw.choice([0, 0.02])) for _ in range(3)]
    joined: list[Process] = []
    for _ in range(8):
        time.sleep(draw.uniform(0, 0.5))
        victim = living.pop(draw.randrange(len(living)))
        victim.kill()
        living.append(start(draw.choice([0, 0.02])))
        joined = [one for one in joined if one is not victim]
        if draw.random() < 0.5:
            chosen = draw.choice(living)
            if chosen not in joined:
                assert chosen.has_joined()
                joined.append(chosen)
        assert all(one.asked("check") for one in joined)
    for one in living:
        if one not in joined:
            assert one.has_joined()
        one.asked("leave")
    assert not folder.exists()


def test_a_hanging_process_is_skipped_after_a_timeout(start, here) -> None:
    maker = start(0.01)
    maker.hear()  # it copies, and holds the lock
    maker.popen.send_signal(signal.SIGSTOP)
    with pytest.raises(SharingError, match="lock"):
        join_arena(here.new_device(), IDENTITY, here.LAYOUT, lambda _: None, seconds=0.1)
    maker.popen.send_signal(signal.SIGCONT)
    assert maker.has_joined()


FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@FORKS
def test_a_forked_child_has_the_weights_and_is_not_part_of_the_meeting(here, folder) -> None:
    arena = here.join(IDENTITY)
    ready, go_on = os.pipe(), os.pipe()
    with contextlib.suppress(KeyError), locked_meeting("f" * 32):
        served = folder.parent / ("f" * 32) / "by somebody"
        served.touch()
        child = os.fork()
        if child == 0:
            right = here.is_right(arena.memory.data)
            arena.close()  # the parent's socket and memory stay
            os.write(ready[1], b"y" if right else b"n")
            os.read(go_on[0], 1)
            os._exit(0)
        assert os.read(ready[0], 1) == b"y"
        raise KeyError("the parent releases the lock, as if it had died")
    try:
        with locked_meeting("f" * 32, seconds=0.1):
            served.unlink()
        assert len(arena.report().processes) == 1
        arena.close()
        assert not folder.exists()
    finally:
        os.write(go_on[1], b"x")
        assert os.waitpid(child, 0)[1] == 0
        for descriptor in (*ready, *go_on):
            os.close(descriptor)


def test_a_forked_child_does_not_keep_its_killed_parents_socket(start, folder) -> None:
    """Otherwise the parent would seem alive, and requests to it would wait in vain."""
    parent = start()
    assert parent.has_joined()
    child = parent.asked("fork")
    try:
        parent.kill()
        late = start()
        assert late.has_joined()
        assert len(list(folder.iterdir())) == 1
    finally:
        os.kill(child, signal.SIGKILL)
