"""The timeline: invariants, and examples computed by hand."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi import tasks as abi
from driver_layer.abi.cost import Space
from driver_layer.abi.cost.dma import dma_busy_ns, dma_latency_ns
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import DeviceFault
from driver_layer.npu.program import Program
from driver_layer.npu.timeline import (
    Engine,
    Price,
    TaskTime,
    simulate,
)
from driver_layer.npu.timeline.simulate import fair_rates
from driver_layer.testing.queues import QueuedTask, queue_of

LUNAR = PLATFORMS["4000"]
DDR_BYTES_PER_NS = 136.0


def price(busy: float, latency: float = 0.0, ddr_share: float = 0.0) -> Price:
    """Return the price of a task that uses a share of the DDR bandwidth while it is busy."""
    ddr_bytes = round(ddr_share * busy * DDR_BYTES_PER_NS)
    return Price(Engine.DMA, None, ddr_bytes, ddr_bytes, 0, latency, busy)


Priced = tuple[QueuedTask, Price]


def task(cost: Price, wait: int = 0, post: int = 0, after: int = 0, slots: int = 1) -> Priced:
    return QueuedTask(wait, post, after, slots), cost


def configs(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """Return barriers from rows of next, producers, consumers, physical number."""
    table = np.zeros(len(rows), abi.BARRIER_CONFIG)
    for index, row in enumerate(rows):
        table[index] = row
    return table


def program(barriers: np.ndarray, **queues: list[Priced]) -> tuple[Program, list[list[Price]]]:
    made = tuple(queue_of(name, [one for one, _ in tasks]) for name, tasks in queues.items())
    prices = [[cost for _, cost in tasks] for tasks in queues.values()]
    return Program(made, barriers, ()), prices


def spans(times: list[TaskTime]) -> dict[str, tuple[float, float]]:
    return {f"{time.queue}{time.index}": (time.begin_ns, time.end_ns) for time in times}


def makespan(times: list[TaskTime]) -> float:
    return max(time.end_ns for time in times)


# Queues and barriers


def test_a_queue_runs_one_task_after_the_other() -> None:
    times = simulate(*program(configs(), a=[task(price(5, 2)), task(price(3))]), LUNAR)
    assert spans(times) == {"a0": (0, 7), "a1": (7, 10)}


def test_queues_run_concurrently_until_a_barrier_makes_one_wait() -> None:
    barriers = configs((-1, 2, 1, 0))
    a = [task(price(5), post=1), task(price(1))]
    b = [task(price(8), post=1)]
    c = [task(price(2)), task(price(4), wait=1)]
    times = spans(simulate(*program(barriers, a=a, b=b, c=c), LUNAR))
    assert times == {"a0": (0, 5), "a1": (5, 6), "b0": (0, 8), "c0": (0, 2), "c1": (8, 12)}


def test_a_waiting_head_delays_the_tasks_behind_it() -> None:
    barriers = configs((-1, 1, 1, 0))
    times = spans(
        simulate(
            *program(
                barriers, a=[task(price(1), wait=1), task(price(1))], b=[task(price(9), post=1)]
            ),
            LUNAR,
        )
    )
    assert times["a1"] == (10, 11)


def test_a_task_waits_until_its_barriers_are_programmed() -> None:
    barriers = configs((1, 1, 1, 0), (-1, 1, 0, 0))
    late = task(price(1), post=1, after=2)
    queues = {"a": [late], "b": [task(price(4), post=1), task(price(3), wait=1)]}
    assert spans(simulate(*program(barriers, **queues), LUNAR))["a0"] == (7, 8)


def test_a_deadlock_names_queue_and_task() -> None:
    with pytest.raises(DeviceFault, match="a, task 1: deadlock: waits for barriers 0"):
        simulate(
            *program(configs((-1, 1, 1, 0)), a=[task(price(1)), task(price(1), wait=1, post=1)]),
            LUNAR,
        )


def test_a_barrier_used_too_often_or_never_completed_is_a_fault() -> None:
    with pytest.raises(DeviceFault, match="a, task 1: barrier 0 is used more often"):
        simulate(*program(configs((-1, 1, 0, 0)), a=[task(price(1), post=1)] * 2), LUNAR)
    with pytest.raises(DeviceFault, match=r"open barriers \[0\]"):
        simulate(*program(configs((-1, 2, 0, 0)), a=[task(price(1), post=1)]), LUNAR)


# DDR


def test_two_transfers_share_ddr_when_it_cannot_serve_both() -> None:
    """Each requests 75 %, gets 50 %, and takes 1.5 times as long."""
    queues = {name: [task(price(100, ddr_share=0.75))] for name in "ab"}
    times = spans(simulate(*program(configs(), **queues), LUNAR))
    assert times["a0"] == times["b0"] == (0, pytest.approx(150))


def test_a_transfer_has_all_of_ddr_during_the_others_latency() -> None:
    queues = {
        "a": [task(price(100, ddr_share=0.75))],
        "b": [task(price(100, latency=50, ddr_share=0.75))],
    }
    times = spans(simulate(*program(configs(), **queues), LUNAR))
    assert times == {"a0": (0, pytest.approx(125)), "b0": (0, pytest.approx(175))}


def test_small_demands_are_met_before_large_ones() -> None:
    assert fair_rates([0.8, 0.2, 0.8]) == pytest.approx([0.5, 1.0, 0.5])
    assert fair_rates([0.3, 0.3]) == [1.0, 1.0]
    assert fair_rates([2.0]) == [0.5]
    assert fair_rates([]) == []


@given(st.lists(st.floats(0.001, 3), min_size=1, max_size=8))
def test_ddr_is_never_overbooked_and_never_idle_while_demand_remains(
    demands: list[float],
) -> None:
    rates = fair_rates(demands)
    used = sum(rate * demand for rate, demand in zip(rates, demands, strict=True))
    assert all(0 < rate <= 1 for rate in rates)
    assert used == pytest.approx(min(1.0, sum(demands)))


def test_three_channels_of_4000_are_limited_by_ddr_and_two_are_not() -> None:
    """Two loads use 119 of 136 GB/s; a third would make it 179."""
    nbytes = 1 << 20
    latency = dma_latency_ns(LUNAR, Space.DDR, Space.CMX)
    busy = dma_busy_ns(LUNAR, nbytes, Space.DDR, Space.CMX)
    load = task(Price(Engine.DMA, None, nbytes, nbytes, 0, latency, busy))
    two = simulate(*program(configs(), a=[load], b=[load]), LUNAR)
    assert makespan(two) == latency + busy
    three = simulate(*program(configs(), a=[load], b=[load], c=[load]), LUNAR)
    assert makespan(three) == pytest.approx(latency + 3 * nbytes / DDR_BYTES_PER_NS)


def test_a_faster_engine_can_make_a_program_slower_by_crowding_ddr() -> None:
    """The critical transfer has DDR alone, unless the DPU releases another transfer earlier."""

    def run(dpu: float) -> float:
        barriers = configs((-1, 1, 1, 0), (-1, 1, 1, 1))
        urgent = task(price(100, ddr_share=1), post=1)
        other = task(price(100, ddr_share=1), wait=2)
        first = task(price(dpu), post=2)
        long = task(price(1000), wait=1)
        return makespan(
            simulate(*program(barriers, a=[urgent], b=[other], c=[first], d=[long]), LUNAR)
        )

    assert run(dpu=100) == pytest.approx(1100)
    assert run(dpu=50) == pytest.approx(1150)


# Any program


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A random program: tasks in an order that respects all barriers; barriers are (producers,
    consumers)."""

    queues: tuple[str, ...]
    prices: tuple[Price, ...]
    barriers: tuple[tuple[frozenset[int], frozenset[int]], ...]

    def program(
        self, change: Callable[[Price], Price] = lambda same: same
    ) -> tuple[Program, list[list[Price]]]:
        made = defaultdict(list)
        for index, (queue, cost) in enumerate(zip(self.queues, self.prices, strict=True)):
            wait = sum(
                1 << b for b, (_, consumers) in enumerate(self.barriers) if index in consumers
            )
            post = sum(
                1 << b for b, (producers, _) in enumerate(self.barriers) if index in producers
            )
            made[queue].append(task(change(cost), wait, post))
        rows = [(-1, len(p), len(c), b) for b, (p, c) in enumerate(self.barriers)]
        return program(configs(*rows), **made)

    def ordered(self, times: list[TaskTime]) -> list[TaskTime]:
        """Return the times in the order of the tasks."""
        queues = defaultdict(list)
        for time in times:
            queues[time.queue].append(time)
        return [queues[queue].pop(0) for queue in self.queues]

    def longest_path(self, duration: Callable[[Price], float]) -> list[float]:
        """Return the ends of tasks that each begin as soon as queue and barriers allow."""
        ends: list[float] = []
        free: dict[str, float] = {}
        for index, (queue, cost) in enumerate(zip(self.queues, self.prices, strict=True)):
            before = [
                ends[producer]
                for producers, consumers in self.barriers
                if index in consumers
                for producer in producers
            ]
            ends.append(max([free.get(queue, 0.0), *before]) + duration(cost))
            free[queue] = ends[-1]
        return ends


@st.composite
def drawn_programs(draw: st.DrawFn, ddr: bool) -> Drawn:
    count = draw(st.integers(1, 14))
    queues = draw(st.lists(st.sampled_from("abcd"), min_size=count, max_size=count))
    durations = st.integers(1, 100)
    shares = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5]) if ddr else st.just(0.0)
    prices = [price(draw(durations), draw(st.integers(0, 20)), draw(shares)) for _ in range(count)]
    barriers = []
    for _ in range(draw(st.integers(0, 8)) if count > 1 else 0):
        cut = draw(st.integers(1, count - 1))
        producers = draw(st.frozensets(st.integers(0, cut - 1), min_size=1, max_size=4))
        consumers = draw(st.frozensets(st.integers(cut, count - 1), max_size=4))
        barriers.append((producers, consumers))
    return Drawn(tuple(queues), tuple(prices), tuple(barriers))


@given(drawn_programs(ddr=False))
def test_without_contention_every_task_begins_as_early_as_possible(drawn: Drawn) -> None:
    times = drawn.ordered(simulate(*drawn.program(), LUNAR))
    assert [time.end_ns for time in times] == drawn.longest_path(lambda cost: cost.alone_ns)


@given(drawn_programs(ddr=True))
def test_no_task_begins_before_its_barriers_or_its_queue_allow(drawn: Drawn) -> None:
    times = drawn.ordered(simulate(*drawn.program(), LUNAR))
    for producers, consumers in drawn.barriers:
        opened = max(times[producer].end_ns for producer in producers)
        assert all(times[consumer].begin_ns >= opened for consumer in consumers)
    busy_until: dict[str, float] = {}
    for time in times:
        assert time.begin_ns >= busy_until.get(time.queue, 0.0)
        assert time.end_ns - time.begin_ns >= time.alone_ns * (1 - 1e-9)
        busy_until[time.queue] = time.end_ns


@given(drawn_programs(ddr=True))
def test_the_makespan_is_at_least_any_queue_the_critical_path_and_the_ddr_time(
    drawn: Drawn,
) -> None:
    total = makespan(simulate(*drawn.program(), LUNAR)) * (1 + 1e-9)
    busy = defaultdict(float)
    for queue, cost in zip(drawn.queues, drawn.prices, strict=True):
        busy[queue] += cost.alone_ns
    assert total >= max(busy.values())
    assert total >= max(drawn.longest_path(lambda cost: cost.alone_ns))
    assert total >= sum(cost.ddr_bytes for cost in drawn.prices) / DDR_BYTES_PER_NS


@given(drawn_programs(ddr=True))
def test_the_makespan_is_at_most_that_with_equal_parts_of_ddr(drawn: Drawn) -> None:
    """A transfer always gets at least an equal part, so this bound holds for any contention."""
    queues = len(set(drawn.queues))

    def slowest(cost: Price) -> float:
        share = cost.ddr_bytes / (cost.busy_ns * DDR_BYTES_PER_NS)
        return cost.latency_ns + cost.busy_ns * max(1.0, share * queues)

    bound = max(drawn.longest_path(slowest))
    assert makespan(simulate(*drawn.program(), LUNAR)) <= bound * (1 + 1e-9)


@given(drawn_programs(ddr=False), st.data())
def test_without_contention_a_faster_task_never_delays_another(
    drawn: Drawn, data: st.DataObject
) -> None:
    faster_queue = data.draw(st.sampled_from(drawn.queues))
    halved = tuple(
        dataclasses.replace(cost, busy_ns=cost.busy_ns / 2) if queue == faster_queue else cost
        for queue, cost in zip(drawn.queues, drawn.prices, strict=True)
    )
    before = drawn.ordered(simulate(*drawn.program(), LUNAR))
    faster = dataclasses.replace(drawn, prices=halved)
    after = faster.ordered(simulate(*faster.program(), LUNAR))
    assert all(new.end_ns <= old.end_ns for new, old in zip(after, before, strict=True))


@given(drawn_programs(ddr=True))
def test_a_device_twice_as_fast_in_everything_takes_half_the_time(drawn: Drawn) -> None:
    def twice(cost: Price) -> Price:
        latency, busy = cost.latency_ns / 2, cost.busy_ns / 2
        return dataclasses.replace(cost, latency_ns=latency, busy_ns=busy)

    fast = dataclasses.replace(LUNAR, ddr_mb_per_s=2 * LUNAR.ddr_mb_per_s)
    before = simulate(*drawn.program(), LUNAR)
    after = simulate(*drawn.program(twice), fast)
    assert [time.end_ns * 2 for time in after] == [time.end_ns for time in before]


@given(st.integers(1, 3), st.integers(4, 24), st.data())
def test_few_physical_barriers_delay_tasks_but_all_tasks_run(
    physical: int, layers: int, data: st.DataObject
) -> None:
    """Barrier v uses physical barrier v mod n: layer v signals it, layer v + 1 waits for it."""
    rows = [
        (v + physical if v + physical < layers else -1, 1, int(v + 1 < layers), v % physical)
        for v in range(layers)
    ]
    queues: dict[str, list[QueuedTask]] = defaultdict(list)
    durations = data.draw(st.lists(st.integers(1, 9), min_size=layers, max_size=layers))
    for v, duration in enumerate(durations):
        wait = 1 << (v - 1) % physical if v else 0
        if physical == 1 and v:
            wait = 0  # a task cannot wait for the barrier that its own one replaces
        name = data.draw(st.sampled_from("ab"))
        queues[name].append(task(price(duration), wait, 1 << v % physical, v + 1))
    if physical == 1:
        rows = [(v + 1 if v + 1 < layers else -1, 1, 0, 0) for v in range(layers)]
    times = simulate(*program(configs(*rows), **queues), LUNAR)
    assert makespan(times) == sum(durations), "each layer follows the one before it"
    assert len(times) == layers
