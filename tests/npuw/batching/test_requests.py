"""Order of conversations, scope of failures, and rejected calls."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuw_layer import Core
from npuw_layer.batching import Worker
from npuw_layer.batching.schedule import plan_step
from npuw_layer.batching.slots import SlotModel, seats
from npuw_layer.errors import (
    CapacityError,
    DeviceError,
    OptionError,
    PromptTooLong,
    RequestError,
    TensorError,
)


@given(st.lists(st.booleans(), max_size=9), st.integers(1, 8))
def test_a_step_reads_the_oldest_prompts_and_the_oldest_tokens(prompts, slots) -> None:
    plan = plan_step(prompts, slots)
    assert [*plan.prompts] == [order for order, prompt in enumerate(prompts) if prompt]
    tokens = [order for order, prompt in enumerate(prompts) if not prompt]
    assert [*plan.generate] == tokens[:slots]


@given(st.data())
def test_a_conversation_keeps_its_slot(data: st.DataObject) -> None:
    who = st.integers(0, 12)
    sitting = data.draw(st.lists(who, min_size=1, max_size=8))
    coming = data.draw(st.lists(who, max_size=len(sitting), unique=True))
    places = seats(sitting, coming)
    assert len(set(places)) == len(coming) == len(places)
    for one, place in zip(coming, places, strict=True):
        assert sitting[place] == one or one not in sitting


def test_a_long_prompt_is_read_between_the_steps_of_others(batching, crowd) -> None:
    engine = batching(**crowd.CHUNKED)
    crowd.begin(engine.open(), [crowd.Turn([1, 2], answer=30)])
    engine.step()
    crowd.begin(engine.open(), [crowd.Turn([3] * 100, answer=1)])
    reports = [engine.step() for _ in range(7)]
    assert [report.read for report in reports] == [16] * 6 + [4]
    assert all(report.generated == 1 for report in reports)


def test_conversations_are_served_in_order_of_arrival(batching, crowd) -> None:
    """One place: the second conversation begins when the first is closed, then the third."""
    engine, done = batching(places=1), list[int]()
    requests = [engine.open() for _ in range(3)]
    for number in (2, 0, 1):
        requests[number].submit([number + 1]).add_done_callback(lambda _, n=number: done.append(n))
    for expected in ([2], [2, 0], [2, 0, 1]):
        crowd.run(engine)
        assert done == expected
        requests[done[-1]].close()


def test_with_more_conversations_than_slots_all_get_equally_many_tokens(batching, crowd) -> None:
    engine = batching(places=6)
    requests = [engine.open() for _ in range(6)]
    for request in requests:
        request.submit([1, 2, 3])
    crowd.run(engine)
    tokens = dict.fromkeys(requests, 0)

    def speak(request: Any) -> None:
        def heard(_: Any) -> None:
            tokens[request] += 1
            speak(request)

        request.submit([4]).add_done_callback(heard)

    for request in requests:
        speak(request)
    assert [engine.step().generated for _ in range(9)] == [4] * 9
    assert set(tokens.values()) == {6}


def test_a_full_cache_of_one_conversation_does_not_affect_others(talks, batching, crowd) -> None:
    engine = batching()
    long, short = engine.open(), engine.open()
    long.submit([1] * 128)
    crowd.run(engine)
    turns = [crowd.Turn([5, 6], answer=90)]
    found = crowd.begin(short, turns)
    failures: list[BaseException] = []

    def speak() -> None:
        long.submit([2]).add_done_callback(heard)

    def heard(logits: Any) -> None:
        if logits.exception() is None:
            speak()
        else:
            failures.append(logits.exception())

    speak()
    crowd.run(engine)
    (failure,) = failures
    assert isinstance(failure, CapacityError)
    assert failure.stored == long.stored == 191
    assert crowd.same(found, crowd.alone(talks(**crowd.SLOTS), turns))
    again = long.submit([3, 4], keep=4)
    crowd.run(engine)
    expected = crowd.alone(talks(**crowd.SLOTS), [crowd.Turn([1, 1, 1, 1, 3, 4])])
    assert crowd.same([again.result(0)], expected)


@pytest.mark.parametrize("options", ["SLOTS", "CHUNKED"])
def test_a_prompt_that_is_too_long_fails_before_reading(batching, crowd, options) -> None:
    engine = batching(**getattr(crowd, options))
    request = engine.open()
    future = request.submit([1] * 129)
    assert [report.read for report in crowd.run(engine)] == [0]
    with pytest.raises(PromptTooLong, match="has 129 tokens"):
        future.result(0)
    assert request.stored == 0


def test_a_device_failure_fails_the_running_conversations_which_can_continue(
    batching, crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise DeviceError("lost")

    engine = batching()
    requests = [engine.open() for _ in range(2)]
    for request in requests:
        request.submit([1, 2])
    crowd.run(engine)
    futures = [request.submit([3]) for request in requests]
    with monkeypatch.context() as patched:
        patched.setattr(SlotModel, "run", fail)
        crowd.run(engine)
    for future in futures:
        with pytest.raises(DeviceError, match="lost"):
            future.result(0)
    again = [request.submit([3]) for request in requests]
    crowd.run(engine)
    assert np.array_equal(again[0].result(0), again[1].result(0))


def test_no_caller_waits_for_a_failed_worker(batching, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    engine = batching()
    monkeypatch.setattr("npuw_layer.batching.runner.Runner.read", broken)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    with Worker(engine):
        future = engine.open().submit([1, 2])
        with pytest.raises(RequestError, match="closed"):
            future.result(60)


def test_closed_and_cancelled_conversations_end(batching, crowd) -> None:
    engine = batching(places=1)
    first, second = engine.open(), engine.open()
    assert first.submit([1]).cancel()
    kept = first.submit([1, 2])
    waiting = second.submit([3])
    crowd.run(engine)
    assert first.stored == 2
    assert kept.done()
    assert not waiting.done()
    second.close()
    with pytest.raises(CancelledError):
        waiting.result(0)
    with pytest.raises(RequestError, match="the conversation was closed"):
        second.submit([1])
    engine.close()
    with pytest.raises(RequestError, match="the conversation was closed"):
        first.submit([1])
    with pytest.raises(RequestError, match="the engine was closed"):
        engine.open()
    assert not engine.wait(0)


def test_an_id_outside_the_vocabulary_is_rejected_immediately_without_effect(batching) -> None:
    engine = batching(NPUW_LLM_BATCH_SLOTS="2")
    one, other = engine.open(), engine.open()
    heard = [each.submit([1, 2, 3]) for each in (one, other)]
    for wrong in (97, -1):
        with pytest.raises(TensorError, match=rf"input_ids\[2\] is {wrong},.* 0 to 96"):
            engine.open().submit([4, 5, wrong])
    for _ in range(2):
        engine.step()
    assert all(each.done() for each in heard)
    with pytest.raises(TensorError, match=r"input_ids\[0\] is 98"):
        one.submit([98])
    again = [each.submit([96]) for each in (one, other)]
    engine.step()
    np.testing.assert_array_equal(*(each.result(0) for each in again))
    assert one.stored == other.stored == 4


def test_wrong_calls_are_rejected(batching, crowd) -> None:
    engine = batching()
    request = engine.open()
    for ids in ([[1]], [0.5]):
        with pytest.raises(TensorError, match="pass integers"):
            request.submit(ids)
    for ids in ([], np.zeros(0, np.int64)):
        with pytest.raises(TensorError, match="ids are empty; submit at least one token"):
            request.submit(ids)
    with pytest.raises(TensorError, match="keep=1: only 0 tokens are stored"):
        request.submit([1], keep=1)
    for keep in (0.0, "0", [0]):
        with pytest.raises(TensorError, match=r"keep=.* is not a number of tokens"):
            request.submit([1], keep=keep)
    future = request.submit([1], keep=np.int64(0))
    with pytest.raises(RequestError, match="not read yet"):
        request.submit([2])
    refused: list[str] = []

    def within(_: Any) -> None:
        for call in (engine.step, engine.close):
            with pytest.raises(RequestError) as error:
                call()
            refused.append(str(error.value))

    future.add_done_callback(within)
    crowd.run(engine)
    assert [text.split(";")[0] for text in refused] == [
        "a future's callback cannot run a step",
        "a future's callback cannot close the engine",
    ]


@pytest.mark.parametrize("slots", ["0", "4,65", "many", True])
def test_invalid_numbers_of_slots_are_rejected(tiny, slots) -> None:
    with pytest.raises(OptionError, match="NPUW_LLM_BATCH_SLOTS"):
        Core().compile_model(tiny, "NPU", {"NPUW_LLM_BATCH_SLOTS": slots})
