"""NPU_RUN_INFERENCES_SEQUENTIALLY: requests of one model run in the order of their starts."""

from __future__ import annotations

import gc
import threading

import pytest
from tests.npuw.kinds.static.batches import EXACT, assert_same, items, outcome

from npuw_layer import Core
from npuw_layer.api.async_run import AsyncRun
from npuw_layer.api.in_order import InOrder
from npuw_layer.errors import InferenceCancelled, NpuwUsageError, OptionError, TensorError

IN_ORDER = {"NPU_RUN_INFERENCES_SEQUENTIALLY": "YES"}


@pytest.fixture
def ordered(compile_static, graphs):
    return compile_static(graphs["classifier"](), **IN_ORDER)


@pytest.fixture
def ran(ordered, monkeypatch):
    """Return three requests, and the numbers of those that ran."""
    requests = [ordered.compiled.create_infer_request() for _ in range(3)]
    ran: list[int] = []
    for number, request in enumerate(requests):
        run = request._program.run

        def noted(number=number, run=run) -> None:
            ran.append(number)
            run()

        monkeypatch.setattr(request._program, "run", noted)
    return requests, ran


def test_each_request_waits_for_the_one_before_and_results_are_unchanged(
    ordered, classify, ran, check_alike
) -> None:
    requests, order = ran
    for turn in range(4):
        for number, request in enumerate(requests):
            request.start_async(ordered.inputs(10 * turn + number))
        for number, request in enumerate(requests):
            request.wait()
            alone = classify.compiled.create_infer_request().infer(
                classify.inputs(10 * turn + number)
            )
            check_alike({name: request.get_tensor(name).data for name in alone}, alone)
    assert order == [0, 1, 2] * 4


def test_a_blocked_request_blocks_all_later_ones(ran, ordered, monkeypatch) -> None:
    requests, order = ran
    begun, go_on = threading.Event(), threading.Event()
    run = requests[0]._program.run

    def held() -> None:
        begun.set()
        assert go_on.wait(60)
        run()

    monkeypatch.setattr(requests[0]._program, "run", held)
    for request in requests:
        request.start_async(ordered.inputs(1))
    assert begun.wait(60)
    assert not requests[2].wait_for(20)
    assert order == []
    requests[1].cancel()
    go_on.set()
    requests[2].wait()
    with pytest.raises(InferenceCancelled):
        requests[1].wait()
    assert order == [0, 2], "a cancelled request releases the next"


def test_an_order_other_than_the_first_is_an_error_without_effect(ran, ordered) -> None:
    requests, order = ran
    inputs = ordered.inputs(1)
    for number in (0, 1, 2, 0):
        requests[number].start_async(inputs)
        requests[number].wait()
    with pytest.raises(NpuwUsageError, match="request 3 is started after request 1"):
        requests[2].start_async(inputs)
    for number in (1, 0, 1, 2):  # a round may end early
        requests[number].start_async(inputs)
        requests[number].wait()
    assert order == [0, 1, 2, 0, 1, 0, 1, 2]


def test_infer_is_rejected_in_favour_of_start_async(ordered) -> None:
    request = ordered.compiled.create_infer_request()
    with pytest.raises(
        NpuwUsageError,
        match="SEQUENTIALLY = YES: infer is not supported; use start_async and wait",
    ):
        request.infer(ordered.inputs(1))
    assert request.wait_for(0)


def test_a_request_that_could_not_start_takes_no_turn(ran, ordered) -> None:
    requests, order = ran
    inputs = ordered.inputs(1)
    with pytest.raises(TensorError):
        requests[2].start_async({"ids": inputs["gain"]})
    for number in (1, 0):
        requests[number].start_async(inputs)
        requests[number].wait()
    assert order == [1, 0]


def test_a_failed_request_releases_the_next() -> None:
    place = InOrder().place
    first, second = AsyncRun(place=place()), AsyncRun(place=place())

    def fail() -> None:
        raise ValueError("first")

    done: list[int] = []
    first.start(fail, None, lambda: None)
    second.start(lambda: done.append(1), None, lambda: None)
    assert second.wait(60_000)
    assert done == [1]
    with pytest.raises(ValueError, match="first"):
        first.wait()


def test_deleted_requests_are_not_waited_for() -> None:
    place = InOrder().place
    runs = [AsyncRun(place=place()) for _ in range(4)]
    done: list[int] = []

    def start(number: int) -> None:
        runs[number].start(lambda: done.append(number), None, lambda: None)
        runs[number].wait()

    for number in range(4):
        start(number)
    runs[1] = runs[2] = AsyncRun()
    gc.collect()
    for number in (0, 3, 0):
        start(number)
    assert done == [0, 1, 2, 3, 0, 3, 0]


def test_an_imported_blob_runs_in_order(whole, check_alike) -> None:
    imported = whole.core.import_model(whole.compiled.export_model(), "NPU", IN_ORDER)
    request = imported.create_infer_request()
    with pytest.raises(NpuwUsageError, match="use start_async and wait"):
        request.infer(whole.inputs(1))
    request.start_async(whole.inputs(1))
    request.wait()
    expected = whole.compiled.create_infer_request().infer(whole.inputs(1))
    check_alike({name: request.get_tensor(name).data for name in expected}, expected)


def test_models_through_npuw_are_rejected(classify, tiny) -> None:
    for path, options in ((tiny, {}), (classify.path, {"NPU_USE_NPUW": "YES"})):
        with pytest.raises(OptionError, match="SEQUENTIALLY = YES is only for static models"):
            Core().compile_model(path, "NPU", IN_ORDER | options)


def test_a_batch_run_item_by_item_takes_one_turn(open_batch, opened) -> None:
    model = Core().compile_model(open_batch, "NPU", EXACT | IN_ORDER)
    requests = [model.create_infer_request() for _ in range(2)]
    for count, request in enumerate(requests, 2):
        request.start_async(items(count))
    for count, request in enumerate(requests, 2):
        request.wait()
        assert_same(request.results, outcome(opened, items(count)))
    with pytest.raises(NpuwUsageError, match="use start_async and wait"):
        requests[0].infer(items(2))
