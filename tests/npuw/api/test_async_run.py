"""Inferences that a request runs asynchronously: end of threads, and failures to start them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from npuw_layer.api.async_run import AsyncRun
from npuw_layer.errors import NpuwFault, RequestBusy

FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def said_by_child(say: Callable[[], bool]) -> bool:
    """Return whether a forked child reports success within a minute."""
    child = os.fork()
    if child == 0:
        threading.Timer(60, lambda: os._exit(2)).start()
        os._exit(0 if say() else 1)
    return os.waitpid(child, 0)[1] == 0


def runs(run: AsyncRun) -> bool:
    """Return whether work starts and ends."""
    done: list[int] = []
    run.start(lambda: done.append(1), None, lambda: None)
    return run.wait(30_000) and done == [1]


@FORKS
def test_a_forked_child_has_its_own_thread() -> None:
    run = AsyncRun()
    assert runs(run)
    assert said_by_child(lambda: runs(run))
    assert runs(run)


@FORKS
def test_a_forked_child_does_not_wait_for_inferences_of_its_parent() -> None:
    run, begun, go_on = AsyncRun(), threading.Event(), threading.Event()

    def last() -> None:
        begun.set()
        go_on.wait(60)

    run.start(last, None, lambda: None)
    begun.wait(60)
    assert said_by_child(lambda: run.wait(30_000) and runs(run))
    with pytest.raises(RequestBusy):
        run.check_idle()
    go_on.set()
    assert run.wait(60_000)


def test_without_a_thread_nothing_starts_and_the_request_stays_idle(monkeypatch) -> None:
    run = AsyncRun()

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(NpuwFault, match="can't start new thread"):
            run.start(lambda: None, None, lambda: None)
    run.check_idle()
    assert run.wait()
    assert runs(run)


def test_a_callback_that_is_faster_than_its_start_must_not_wait() -> None:
    """The wait was once allowed if the starting thread had not yet recorded the inference."""
    called = threading.Event()

    class Late(AsyncRun):
        def _submit(self, outcome, work):
            super()._submit(outcome, work)
            assert called.wait(60)

    def call() -> None:
        try:
            run.wait()
        finally:
            called.set()

    run = Late()
    run.start(lambda: None, call, lambda: None)
    with pytest.raises(RequestBusy, match="a callback cannot wait"):
        run.wait()
    assert runs(run)


def test_wait_waits_for_the_inference_that_a_callback_starts() -> None:
    """A start that returned late once recorded its own ended inference in its place."""
    begun, go_on, ended = threading.Event(), threading.Event(), list[str]()

    class Late(AsyncRun):
        def _submit(self, outcome, work):
            super()._submit(outcome, work)
            if threading.current_thread() is threading.main_thread():
                assert begun.wait(60)

    def last() -> None:
        begun.set()
        go_on.wait(60)
        ended.append("last")

    run = Late()
    run.start(lambda: None, lambda: run.start(last, None, lambda: None), lambda: None)
    assert not run.wait(1)
    go_on.set()
    assert run.wait(60_000)
    assert ended == ["last"]


def test_wait_raises_the_stop_iteration_of_a_callback() -> None:
    def stop() -> None:
        raise StopIteration("mine")

    run = AsyncRun()
    run.start(lambda: None, stop, lambda: None)
    with pytest.raises(StopIteration, match="mine"):
        run.wait()
