"""Requests: asynchronous runs, cancellation, callbacks, and independence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuw_layer import StaticInferRequest, Tensor
from npuw_layer.errors import (
    DeviceError,
    InferenceCancelled,
    NpuwUsageError,
    RequestBusy,
    TensorError,
)


class Gate:
    """Gate that holds a request's program where it would run on the device, until it is opened."""

    def __init__(self, request: StaticInferRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        run = request._program.run

        def held() -> None:
            self.reached.set()
            assert self.opened.wait(60)
            run()

        monkeypatch.setattr(request._program, "run", held)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Callable[[StaticInferRequest], Gate]:
    return lambda request: Gate(request, monkeypatch)


def test_start_async_and_wait_equal_infer(classify, check_alike) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    expected = request.infer(inputs)
    other = classify.compiled.create_infer_request()
    other.start_async(inputs)
    other.wait()
    check_alike({name: other.get_tensor(name).data for name in expected}, expected)


def test_wait_for_reports_whether_the_inference_has_ended(classify, hold) -> None:
    request = classify.compiled.create_infer_request()
    assert request.wait_for(0)  # nothing was started
    gate = hold(request)
    request.start_async(classify.inputs(1))
    assert gate.reached.wait(60)
    assert not request.wait_for(1)
    gate.opened.set()
    assert request.wait_for(60_000)


def test_wait_for_lasts_the_given_time_and_rejects_invalid_times(classify, hold) -> None:
    request = classify.compiled.create_infer_request()
    for timeout in (float("inf"), 1e30, 10**400, np.float32(1e30)):  # longer than threads can wait
        request.start_async(classify.inputs(1))
        assert request.wait_for(timeout)
    gate = hold(request)
    request.start_async(classify.inputs(1))
    assert gate.reached.wait(60)
    for timeout in (float("nan"), -1, -0.5, None, "1"):
        with pytest.raises(NpuwUsageError, match="is no timeout; pass 0 or more milliseconds"):
            request.wait_for(timeout)
    gate.opened.set()
    request.wait()


def test_a_callback_must_be_callable(classify) -> None:
    request = classify.compiled.create_infer_request()
    called: list[object] = []
    request.set_callback(called.append, "before")
    with pytest.raises(NpuwUsageError, match="callback 5 is not callable"):
        request.set_callback(5)
    request.start_async(classify.inputs(1))
    request.wait()
    assert called == ["before"]
    request.set_callback(None)
    request.start_async()
    request.wait()
    assert called == ["before"], "None disables the callback"


def test_a_running_request_is_busy(classify, hold) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    gate = hold(request)
    request.start_async(inputs)
    assert gate.reached.wait(60)
    forbidden: list[Callable[[], Any]] = [
        lambda: request.infer(inputs),
        lambda: request.start_async(inputs),
        lambda: request.set_tensor("gain", inputs["gain"]),
        lambda: request.get_tensor("scores"),
        lambda: request.set_callback(print),
    ]
    for call in forbidden:
        with pytest.raises(RequestBusy, match="wait"):
            call()
    gate.opened.set()
    request.wait()
    request.infer(inputs)


class Inquisitive(dict[str, Any]):
    """Inputs that call the request when they are read, as another thread might."""

    def __init__(self, inputs: Any, ask: Callable[[], object]) -> None:
        super().__init__(inputs)
        self._ask = ask

    def items(self) -> Any:
        with pytest.raises(RequestBusy):
            self._ask()
        return super().items()


def test_a_request_is_busy_once_its_inputs_are_read(classify, check_alike) -> None:
    """Two threads could otherwise write to the same inputs concurrently."""
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    expected = request.infer(inputs)
    asking = Inquisitive(inputs, lambda: request.infer(classify.inputs(2)))
    check_alike(request.infer(asking), expected)
    request.start_async(asking)
    request.wait()
    check_alike({name: request.get_tensor(name).data for name in expected}, expected)


def test_rejected_inputs_set_nothing(classify, check_alike) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    expected = request.infer(inputs)
    before = request.transfers.host_to_device
    other = classify.inputs(2)
    for wrong in ({"gain": other["gain"], "ids": np.zeros(3)}, {"gain": other["gain"], "x": 1}):
        for act in (request.infer, request.start_async):
            with pytest.raises(TensorError):
                act(wrong)
    assert request.transfers.host_to_device == before
    check_alike(request.infer(), expected)


def test_a_thread_that_cannot_be_started_leaves_the_request_idle(classify, monkeypatch) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            request.start_async(inputs)
    request.infer(inputs)


def test_the_variables_of_a_running_request_are_busy(recur, hold) -> None:
    request = recur.compiled.create_infer_request()
    gate = hold(request)
    (state,) = request.query_state()
    request.start_async(recur.inputs(1))
    assert gate.reached.wait(60)
    for call in (request.reset_state, state.reset, lambda: state.state):
        with pytest.raises(RequestBusy):
            call()
    with pytest.raises(RequestBusy):
        state.state = np.zeros(state.shape, np.float32)
    gate.opened.set()
    request.wait()


def test_a_cancelled_inference_writes_no_host_tensor(classify, hold) -> None:
    request = classify.compiled.create_infer_request()
    scores = np.full((4, 8), 7, np.float32)
    request.set_tensor("scores", Tensor(scores))
    gate = hold(request)
    request.start_async(classify.inputs(1))
    assert gate.reached.wait(60)
    request.cancel()
    gate.opened.set()
    for _ in range(2):  # each time, until the next inference
        with pytest.raises(InferenceCancelled):
            request.wait()
    assert (scores == 7).all()
    request.infer()
    request.wait()  # the cancelled inference has ended
    assert (scores != 7).all()


def test_cancelling_an_idle_request_does_nothing(classify) -> None:
    request = classify.compiled.create_infer_request()
    request.cancel()
    request.infer(classify.inputs(1))
    request.cancel()
    request.start_async()
    request.wait()


def test_infer_can_be_cancelled_from_another_thread(classify, hold) -> None:
    request = classify.compiled.create_infer_request()
    gate = hold(request)

    def cancel() -> None:
        assert gate.reached.wait(60)
        request.cancel()
        gate.opened.set()

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(InferenceCancelled):
        request.infer(classify.inputs(1))
    other.join()


def test_a_callback_is_called_after_each_inference_and_may_start_the_next(classify) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(1)
    done = threading.Event()
    seen: list[object] = []

    def called(userdata: object) -> None:
        seen.append((userdata, float(request.get_tensor("scores").data.sum())))
        if len(seen) < 3:
            request.start_async(inputs)
        else:
            done.set()

    request.set_callback(called, "mine")
    request.start_async(inputs)
    assert done.wait(60)
    request.wait()
    assert [userdata for userdata, _ in seen] == ["mine"] * 3
    assert len({total for _, total in seen}) == 1
    request.start_async(inputs, "another")
    request.wait()
    assert seen[-1][0] == "another"


def test_wait_raises_the_callbacks_exception(classify) -> None:
    request = classify.compiled.create_infer_request()

    def called(_: object) -> None:
        raise LookupError("of the caller")

    request.set_callback(called)
    request.start_async(classify.inputs(1))
    with pytest.raises(LookupError, match="of the caller"):
        request.wait()
    request.infer()  # infer has no callback


def test_a_callback_cannot_wait_for_its_own_request(classify) -> None:
    request = classify.compiled.create_infer_request()
    request.set_callback(lambda _: request.wait())
    request.start_async(classify.inputs(1))
    with pytest.raises(RequestBusy, match="a callback cannot wait"):
        request.wait()


def test_the_callback_is_called_after_a_failure_too(classify, monkeypatch) -> None:
    request = classify.compiled.create_infer_request()
    called: list[object] = []

    def fail() -> None:
        raise DeviceError("lost")

    monkeypatch.setattr(request._program, "run", fail)
    request.set_callback(called.append, 5)
    request.start_async(classify.inputs(1))
    with pytest.raises(DeviceError, match="lost"):
        request.wait()
    assert called == [5]


def test_concurrent_requests_do_not_disturb_each_other(recur) -> None:
    requests = [recur.compiled.create_infer_request() for _ in range(4)]
    interpreters = [recur.interpreter() for _ in requests]
    for turn in range(3):
        for number, request in enumerate(requests):
            request.start_async(recur.inputs(10 * number + turn))
        for number, (request, interpreter) in enumerate(zip(requests, interpreters, strict=True)):
            request.wait()
            expected = interpreter.run(recur.inputs(10 * number + turn))["y"]
            found = request.get_tensor("y").data
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_rejected_input_leaves_the_request_idle(classify) -> None:
    request = classify.compiled.create_infer_request()
    with pytest.raises(TensorError):
        request.start_async({"gain": np.zeros(3, np.float32)})
    request.infer(classify.inputs(0))
