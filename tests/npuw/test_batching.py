"""Continuous batching: whoever speaks at the same time, each conversation goes as it would alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.batching import BatchedRequest, ContinuousBatching, Worker
from npuw_layer.batching.slots import SlotModel
from npuw_layer.errors import CapacityError, DeviceError, PromptTooLong, RequestError, TensorError

SLOTS = {"NPUW_LLM_BATCH_SLOTS": "2,4"}
LADDER = {**SLOTS, "NPUW_LLM_GENERATE_PYRAMID_STEPS": "24,72"}
CHUNKED = {**LADDER, "NPUW_LLM_PREFILL_CHUNK_SIZE": 16}

Logits = list[np.ndarray]
Script = Generator[tuple[list[int], int], np.ndarray, None]


@dataclass(frozen=True, slots=True)
class Turn:
    """Go back some tokens, say others, and let the model answer with so many."""

    ids: list[int]
    back: int
    answer: int


def script(turns: Sequence[Turn]) -> Script:
    """What a conversation says next, and how far it goes back, given the last logits."""
    for turn in turns:
        logits = yield turn.ids, turn.back
        for _ in range(turn.answer):
            logits = yield [int(logits.argmax())], 0


def alone(talk: Any, turns: Sequence[Turn]) -> Logits:
    """All logits of a conversation that has the device for itself."""
    said, found = script(turns), []
    ids, back = next(said)
    while True:
        found.append(talk.tell(ids, min(back, talk.said)).copy())
        try:
            ids, back = said.send(found[-1])
        except StopIteration:
            return found


def begin(request: BatchedRequest, turns: Sequence[Turn]) -> Logits:
    """Speak through futures alone; the list fills as steps are made, and the request leaves."""
    said, found = script(turns), list[np.ndarray]()

    def submit(ids: list[int], back: int) -> None:
        keep = request.stored - min(back, request.stored)
        request.submit(ids, keep).add_done_callback(heard)

    def heard(logits: Any) -> None:
        found.append(logits.result())
        try:
            submit(*said.send(found[-1]))
        except StopIteration:
            request.close()

    submit(*next(said))
    return found


def same(found: Logits, expected: Logits) -> bool:
    """Whether all logits are the same, but for sums in another order."""
    return len(found) == len(expected) and all(
        np.abs(a - b).max() <= 1e-5 * np.abs(b).max() and a.argmax() == b.argmax()
        for a, b in zip(found, expected, strict=True)
    )


def run(engine: ContinuousBatching) -> list[Any]:
    """Make steps until nobody has anything to say."""
    reports: list[Any] = []
    while engine.wait(0):
        reports.append(engine.step())
        assert len(reports) < 500, "somebody is never served"
    return reports


@pytest.fixture
def batching(talks: Any) -> Callable[..., ContinuousBatching]:
    def make(places: int = 0, **options: Any) -> ContinuousBatching:
        return ContinuousBatching(talks(**(options or SLOTS)).request._compiled, places)

    return make


ids = st.lists(st.integers(0, 96), min_size=1, max_size=40)
turns = st.lists(
    st.builds(Turn, ids, st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=3
)
joining = st.lists(st.tuples(turns, st.integers(0, 6)), min_size=1, max_size=7)


@pytest.mark.parametrize("options", [SLOTS, CHUNKED], ids=["whole prompts", "chunks and variants"])
@settings(max_examples=15, deadline=None)
@given(conversations=joining, places=st.integers(1, 6))
def test_each_conversation_goes_as_it_would_alone(
    talks, options, conversations: list[tuple[list[Turn], int]], places: int
) -> None:
    """They join at any step and leave when they are done; more than places have to wait."""
    engine = ContinuousBatching(talks(**options).request._compiled, places)
    found: list[Logits] = []
    for turns, steps in conversations:
        found.append(begin(engine.open(), turns))
        for _ in range(steps):
            engine.step()
    run(engine)
    for (turns, _), logits in zip(conversations, found, strict=True):
        assert same(logits, alone(talks(**options), turns))


@pytest.mark.parametrize("device", ["NPU", "CPU"])
def test_8_bit_caches_lie_apart_as_others_do(talks, device: str) -> None:
    options = {**LADDER, "KV_CACHE_PRECISION": "i8", "NPUW_DEVICES": device}
    engine = ContinuousBatching(talks(**options).request._compiled)
    everyone = [[Turn([7 * i + j for j in range(3 + 9 * i)], 0, 8)] for i in range(3)]
    found = [begin(engine.open(), turns) for turns in everyone]
    assert {report.slots for report in run(engine)} >= {2, 4}
    for turns, logits in zip(everyone, found, strict=True):
        expected = alone(talks(**options), turns)
        errors = [
            np.abs(a - b).max() / np.abs(b).max() for a, b in zip(logits, expected, strict=True)
        ]
        # A rounding to the other side of a half is one step of 127.
        assert max(errors) < 5e-3


def test_the_smallest_models_that_hold_everyone_run(batching) -> None:
    """By slots for how many there are, by capacity for the longest of them."""
    engine = batching(**LADDER)
    for count in (3, 2, 1, 1):
        begin(engine.open(), [Turn([1] * 5 * count, 0, 3 + count)])
    used = [(r.generated, r.slots, r.capacity) for r in run(engine) if r.generated > 1]
    assert {(2, 2), (3, 4), (4, 4)} <= {(generated, slots) for generated, slots, _ in used}
    assert {capacity for *_, capacity in used} == {24}
    begin(engine.open(), [Turn([1] * 60, 0, 20)])
    begin(engine.open(), [Turn([1] * 5, 0, 20)])
    capacities = [r.capacity for r in run(engine) if r.generated == 2]
    assert list(dict.fromkeys(capacities)) == [72, 192]


def test_slots_are_bound_to_the_conversations_own_caches_and_nothing_is_copied(batching) -> None:
    engine = batching(places=3, **LADDER)
    everyone = [engine.open() for _ in range(2)]
    for request in everyone:
        begin_only = request.submit([5, 6, 7])
        engine.step()
        begin_only.result(0)
    for request in everyone:
        request.submit([1])
    engine.step()
    (model,) = engine._models.values()
    caches = [engine._conversations[request].place.cache for request in everyone]
    assert model._sitting == caches
    program = model._program
    bound = {
        tensor.name: program._pointers[index]
        for index, tensor in enumerate(program._loaded.inputs)
        if "@slot" in tensor.name
    }
    for slot, cache in enumerate(caches):
        for name in cache.names:
            address = cache._places[name][0].memory.address
            place = address + cache._places[name][1] * cache._places[name][0].rows.strides[0]
            assert bound[f"vpux_ie_read_value_{name}@slot{slot}"] == place


def test_what_an_empty_slot_reads_reaches_nobody(talks, batching) -> None:
    """Infinities in the cache of one that left, whose slot nobody took, and of forgotten rows."""
    engine = batching()
    everyone = [engine.open() for _ in range(4)]
    for request in everyone:
        request.submit([9] * 20)
        engine.step()
    for request in everyone:
        request.submit([1])
    engine.step()
    spoiled = [engine._conversations[request].place.cache for request in everyone]
    for request in everyone:
        request.close()
    for cache in spoiled:
        for name in cache.names:
            cache.rows(name)[...] = np.inf
    turns = [Turn([3, 4], 0, 10)]
    found = [begin(engine.open(), turns) for _ in range(3)]
    assert {report.slots for report in run(engine)} == {0, 1, 4, 2} - {2} | {2}
    assert all(same(logits, alone(talks(**SLOTS), turns)) for logits in found)


def test_a_long_prompt_is_read_between_the_steps_of_others(batching) -> None:
    engine = batching(**CHUNKED)
    begin(engine.open(), [Turn([1, 2], 0, 30)])
    engine.step()
    begin(engine.open(), [Turn([3] * 100, 0, 1)])
    reports = [engine.step() for _ in range(7)]
    assert [report.read for report in reports] == [16] * 6 + [4]
    assert all(report.generated == 1 for report in reports)


def test_who_came_first_is_served_first(batching) -> None:
    """One place: the second conversation begins when the first is closed, then the third."""
    engine, done = batching(places=1), list[int]()
    requests = [engine.open() for _ in range(3)]
    for number in (2, 0, 1):
        requests[number].submit([number + 1]).add_done_callback(lambda _, n=number: done.append(n))
    for expected in ([2], [2, 0], [2, 0, 1]):
        run(engine)
        assert done == expected
        requests[done[-1]].close()


def test_with_more_conversations_than_slots_they_take_turns(batching) -> None:
    engine = batching(places=6)
    requests = [engine.open() for _ in range(6)]
    for request in requests:
        request.submit([1, 2, 3])
    run(engine)
    tokens = {request: 0 for request in requests}

    def speak(request: BatchedRequest) -> None:
        def heard(_: Any) -> None:
            tokens[request] += 1
            speak(request)

        request.submit([4]).add_done_callback(heard)

    for request in requests:
        speak(request)
    for _ in range(9):
        assert engine.step().generated == 4
    assert set(tokens.values()) == {6}, "36 tokens for six of them"


def test_the_end_of_ones_capacity_hurts_no_other(talks, batching) -> None:
    engine, full, long = batching(), batching, None
    del full, long
    first, second = engine.open(), engine.open()
    first.submit([1] * 128)
    found = begin(second, [Turn([5, 6], 0, 90)])
    failures: list[Exception] = []

    def speak() -> None:
        def heard(logits: Any) -> None:
            failures.append(logits.exception()) if logits.exception() else speak()

        first.submit([2]).add_done_callback(heard)

    engine.step()
    engine.step()
    speak()
    run(engine)
    (failure,) = failures
    assert isinstance(failure, CapacityError)
    assert "191 tokens are stored" in str(failure)
    assert first.stored == 191
    assert same(found, alone(talks(**SLOTS), [Turn([5, 6], 0, 90)]))
    again = first.submit([3, 4], keep=4)
    run(engine)
    assert same([again.result(0)], [alone(talks(**SLOTS), [Turn([1] * 4 + [3, 4], 0, 0)])[0]])


@pytest.mark.parametrize("options", [SLOTS, CHUNKED])
def test_a_prompt_that_is_too_long_fails_before_any_of_it_is_read(batching, options) -> None:
    engine = batching(**options)
    request = engine.open()
    future = request.submit([1] * 129)
    assert [report.read for report in run(engine)] == [0]
    with pytest.raises(PromptTooLong, match="has 129 tokens"):
        future.result(0)
    assert request.stored == 0


def test_a_device_that_fails_fails_the_futures_of_those_that_ran(
    batching, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = batching()
    requests = [engine.open() for _ in range(2)]
    for request in requests:
        request.submit([1, 2])
    run(engine)
    futures = [request.submit([3]) for request in requests]
    with monkeypatch.context() as patched:
        patched.setattr(SlotModel, "run", lambda *_: (_ for _ in ()).throw(DeviceError("lost")))
        run(engine)
    for future in futures:
        with pytest.raises(DeviceError, match="lost"):
            future.result(0)
    again = [request.submit([3]) for request in requests]
    run(engine)
    assert np.array_equal(again[0].result(0), again[1].result(0))


def test_threads_share_the_device_and_each_hears_its_own(talks, batching) -> None:
    everyone = [[Turn([11 * i + j for j in range(1 + 5 * i)], 0, 10)] for i in range(6)]
    found: dict[int, Logits] = {}

    def speak(number: int, engine: ContinuousBatching) -> None:
        said = script(everyone[number])
        with engine.open() as request:
            tokens, _ = next(said)
            found[number] = [request.submit(tokens).result(60)]
            while len(found[number]) <= everyone[number][0].answer:
                tokens, _ = said.send(found[number][-1])
                found[number].append(request.submit(tokens).result(60))

    engine = batching()
    with Worker(engine):
        threads = [threading.Thread(target=speak, args=(n, engine)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number, turns in enumerate(everyone):
        assert same(found[number], alone(talks(**SLOTS), turns))


def test_what_is_closed_or_cancelled_is_over(batching) -> None:
    engine = batching(places=1)
    first, second = engine.open(), engine.open()
    unwanted = first.submit([1])
    assert unwanted.cancel()
    run(engine)
    assert first.stored == 0
    kept = first.submit([1, 2])
    waiting = second.submit([3])
    run(engine)
    kept.result(0)
    assert not waiting.done()
    second.close()
    with pytest.raises(CancelledError):
        waiting.result(0)
    with pytest.raises(RequestError, match="over"):
        second.submit([1])
    engine.close()
    with pytest.raises(RequestError, match="over"):
        first.submit([1])
    with pytest.raises(RequestError, match="the engine was closed"):
        engine.open()
    assert not engine.wait(0)


def test_wrong_uses_are_refused(batching) -> None:
    engine = batching()
    request = engine.open()
    for ids in ([], [[1]], [0.5]):
        with pytest.raises(TensorError, match="not integers"):
            request.submit(ids)
    with pytest.raises(TensorError, match="keep is 1, but 0 tokens are stored"):
        request.submit([1], keep=1)
    future = request.submit([1])
    with pytest.raises(RequestError, match="not read yet"):
        request.submit([2])
    inside: list[BaseException] = []

    def step(_: Any) -> None:
        try:
            engine.step()
        except RequestError as error:
            inside.append(error)

    future.add_done_callback(step)
    run(engine)
    assert "does not make steps" in str(inside[0])


def test_without_slots_conversations_take_turns_on_what_there_is(talks, batching) -> None:
    engine = batching(places=3, NPUW_LLM_BATCH_SLOTS=1)
    everyone = [[Turn([i, i], 0, 4)] for i in range(3)]
    found = [begin(engine.open(), turns) for turns in everyone]
    assert {report.slots for report in run(engine)} == {0, 1}
    for turns, logits in zip(everyone, found, strict=True):
        assert same(logits, alone(talks(), turns))
