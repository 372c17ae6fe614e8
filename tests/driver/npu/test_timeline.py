"""The timeline: what it keeps to, and examples that a pencil can follow."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi import tasks as abi
from driver_layer.abi.dtypes import DType
from driver_layer.abi.platforms import PLATFORMS, Platform, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW
from driver_layer.abi.shave_text import assemble
from driver_layer.errors import BlobError, DeviceFault, DriverUsageError, OutOfMemory
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.program import Program, Queue, Task
from driver_layer.npu.timeline import (
    Engine,
    Price,
    Pricer,
    TaskTime,
    predict,
    predict_loaded,
    simulate,
)
from driver_layer.npu.timeline.simulate import fair_rates
from driver_layer.testing import blobs

LUNAR = PLATFORMS["4000"]
DDR_BYTES_PER_NS = 136.0
IN_DDR = 0x200000000
BLOB = blobs.dense_blob()


def bus() -> Bus:
    return Bus(Cmx(LUNAR), AddressSpace())


def price(busy: float, latency: float = 0.0, ddr_share: float = 0.0) -> Price:
    """A task that uses this share of the DDR bandwidth while it is busy."""
    ddr_bytes = round(ddr_share * busy * DDR_BYTES_PER_NS)
    return Price(Engine.DMA, None, ddr_bytes, ddr_bytes, 0, latency, busy)


def task(cost: Price, wait: int = 0, post: int = 0, after: int = 0, slots: int = 1) -> Task:
    return Task(wait, post, after, slots, cost)


def configs(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """Rows of next, producers, consumers, physical."""
    table = np.zeros(len(rows), abi.BARRIER_CONFIG)
    for index, row in enumerate(rows):
        table[index] = row
    return table


def program(barriers: np.ndarray, **queues: list[Task]) -> Program:
    made = tuple(Queue(name, tuple(tasks)) for name, tasks in queues.items())
    return Program(made, barriers, (), 0)


def spans(times: list[TaskTime]) -> dict[str, tuple[float, float]]:
    return {f"{time.queue}{time.index}": (time.begin_ns, time.end_ns) for time in times}


def makespan(times: list[TaskTime]) -> float:
    return max(time.end_ns for time in times)


# Queues and barriers


def test_a_queue_runs_one_task_after_the_other() -> None:
    times = simulate(program(configs(), a=[task(price(5, 2)), task(price(3))]), LUNAR)
    assert spans(times) == {"a0": (0, 7), "a1": (7, 10)}


def test_queues_run_at_the_same_time_until_a_barrier_makes_one_wait() -> None:
    barriers = configs((-1, 2, 1, 0))
    a = [task(price(5), post=1), task(price(1))]
    b = [task(price(8), post=1)]
    c = [task(price(2)), task(price(4), wait=1)]
    times = spans(simulate(program(barriers, a=a, b=b, c=c), LUNAR))
    assert times == {"a0": (0, 5), "a1": (5, 6), "b0": (0, 8), "c0": (0, 2), "c1": (8, 12)}


def test_a_waiting_head_holds_up_what_is_behind_it() -> None:
    barriers = configs((-1, 1, 1, 0))
    times = spans(
        simulate(
            program(
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
    assert spans(simulate(program(barriers, **queues), LUNAR))["a0"] == (7, 8)


def test_a_deadlock_names_queue_and_task() -> None:
    with pytest.raises(DeviceFault, match="a, task 1: deadlock: waits for barriers 0"):
        simulate(
            program(configs((-1, 1, 1, 0)), a=[task(price(1)), task(price(1), wait=1, post=1)]),
            LUNAR,
        )


def test_a_barrier_used_too_often_or_never_completed_is_a_fault() -> None:
    with pytest.raises(DeviceFault, match="a, task 1: barrier 0 is used more often"):
        simulate(program(configs((-1, 1, 0, 0)), a=[task(price(1), post=1)] * 2), LUNAR)
    with pytest.raises(DeviceFault, match=r"open barriers \[0\]"):
        simulate(program(configs((-1, 2, 0, 0)), a=[task(price(1), post=1)]), LUNAR)


def test_a_program_that_was_decoded_to_run_has_no_timeline() -> None:
    with pytest.raises(DriverUsageError, match="Pricer"):
        simulate(program(configs(), a=[Task(0, 0, 0, 1, lambda: None)]), LUNAR)


# DDR


def test_two_transfers_share_ddr_when_it_cannot_serve_both() -> None:
    """Each wants 75 %, gets 50 %, and takes half as long again."""
    queues = {name: [task(price(100, ddr_share=0.75))] for name in "ab"}
    times = spans(simulate(program(configs(), **queues), LUNAR))
    assert times["a0"] == times["b0"] == (0, pytest.approx(150))


def test_a_transfer_has_ddr_for_itself_during_the_others_latency() -> None:
    queues = {
        "a": [task(price(100, ddr_share=0.75))],
        "b": [task(price(100, latency=50, ddr_share=0.75))],
    }
    times = spans(simulate(program(configs(), **queues), LUNAR))
    assert times == {"a0": (0, pytest.approx(125)), "b0": (0, pytest.approx(175))}


def test_small_demands_are_met_before_large_ones() -> None:
    assert fair_rates([0.8, 0.2, 0.8]) == pytest.approx([0.5, 1.0, 0.5])
    assert fair_rates([0.3, 0.3]) == [1.0, 1.0]
    assert fair_rates([2.0]) == [0.5]
    assert fair_rates([]) == []


@given(st.lists(st.floats(0.001, 3), min_size=1, max_size=8))
def test_ddr_is_never_overbooked_nor_left_idle_while_someone_wants_it(
    demands: list[float],
) -> None:
    rates = fair_rates(demands)
    used = sum(rate * demand for rate, demand in zip(rates, demands, strict=True))
    assert all(0 < rate <= 1 for rate in rates)
    assert used == pytest.approx(min(1.0, sum(demands)))


def test_three_channels_of_4000_are_limited_by_ddr_and_two_are_not() -> None:
    """Two loads use 119 of 136 GB/s; with a store beside them it would be 179."""
    nbytes = 1 << 20
    load = Pricer(LUNAR).dma(descriptor(nbytes, IN_DDR, tile_base(0)), bus())
    store = Pricer(LUNAR).dma(descriptor(nbytes, tile_base(0), IN_DDR), bus())
    two = simulate(program(configs(), a=[task(load)], b=[task(load)]), LUNAR)
    assert makespan(two) == load.alone_ns
    three = simulate(program(configs(), a=[task(load)], b=[task(load)], c=[task(store)]), LUNAR)
    assert makespan(three) == pytest.approx(load.latency_ns + 3 * nbytes / 136)


def test_a_faster_engine_can_make_a_program_slower_by_crowding_ddr() -> None:
    """What everyone waits for is alone on DDR, unless the DPU lets another transfer in earlier."""

    def run(dpu: float) -> float:
        barriers = configs((-1, 1, 1, 0), (-1, 1, 1, 1))
        urgent = task(price(100, ddr_share=1), post=1)
        other = task(price(100, ddr_share=1), wait=2)
        first = task(price(dpu), post=2)
        long = task(price(1000), wait=1)
        return makespan(
            simulate(program(barriers, a=[urgent], b=[other], c=[first], d=[long]), LUNAR)
        )

    assert run(dpu=100) == pytest.approx(1100)
    assert run(dpu=50) == pytest.approx(1150)


# Any program


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Tasks in an order that respects all barriers, and barriers as (producers, consumers)."""

    queues: tuple[str, ...]
    prices: tuple[Price, ...]
    barriers: tuple[tuple[frozenset[int], frozenset[int]], ...]

    def program(self, change: Callable[[Price], Price] = lambda same: same) -> Program:
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
        """The times in the order of the tasks."""
        queues = defaultdict(list)
        for time in times:
            queues[time.queue].append(time)
        return [queues[queue].pop(0) for queue in self.queues]

    def longest_path(self, duration: Callable[[Price], float]) -> list[float]:
        """When each task would end if it began as soon as its queue and its barriers let it."""
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
def test_without_contention_every_task_begins_as_soon_as_it_may(drawn: Drawn) -> None:
    times = drawn.ordered(simulate(drawn.program(), LUNAR))
    assert [time.end_ns for time in times] == drawn.longest_path(lambda cost: cost.alone_ns)


@given(drawn_programs(ddr=True))
def test_no_task_begins_before_its_barriers_or_its_queue_allow(drawn: Drawn) -> None:
    times = drawn.ordered(simulate(drawn.program(), LUNAR))
    for producers, consumers in drawn.barriers:
        opened = max(times[producer].end_ns for producer in producers)
        assert all(times[consumer].begin_ns >= opened for consumer in consumers)
    busy_until: dict[str, float] = {}
    for time in times:
        assert time.begin_ns >= busy_until.get(time.queue, 0.0)
        assert time.end_ns - time.begin_ns >= time.alone_ns * (1 - 1e-9)
        busy_until[time.queue] = time.end_ns


@given(drawn_programs(ddr=True))
def test_the_makespan_is_at_least_any_queue_the_critical_path_and_what_ddr_allows(
    drawn: Drawn,
) -> None:
    total = makespan(simulate(drawn.program(), LUNAR)) * (1 + 1e-9)
    busy = defaultdict(float)
    for queue, cost in zip(drawn.queues, drawn.prices, strict=True):
        busy[queue] += cost.alone_ns
    assert total >= max(busy.values())
    assert total >= max(drawn.longest_path(lambda cost: cost.alone_ns))
    assert total >= sum(cost.ddr_bytes for cost in drawn.prices) / DDR_BYTES_PER_NS


@given(drawn_programs(ddr=True))
def test_the_makespan_is_at_most_what_equal_parts_of_ddr_would_give(drawn: Drawn) -> None:
    """A transfer always gets its equal part; this bound holds whatever crowds DDR, and when."""
    queues = len(set(drawn.queues))

    def slowest(cost: Price) -> float:
        share = cost.ddr_bytes / (cost.busy_ns * DDR_BYTES_PER_NS)
        return cost.latency_ns + cost.busy_ns * max(1.0, share * queues)

    bound = max(drawn.longest_path(slowest))
    assert makespan(simulate(drawn.program(), LUNAR)) <= bound * (1 + 1e-9)


@given(drawn_programs(ddr=False), st.data())
def test_without_contention_a_faster_task_never_makes_anything_later(
    drawn: Drawn, data: st.DataObject
) -> None:
    faster_queue = data.draw(st.sampled_from(drawn.queues))
    halved = tuple(
        dataclasses.replace(cost, busy_ns=cost.busy_ns / 2) if queue == faster_queue else cost
        for queue, cost in zip(drawn.queues, drawn.prices, strict=True)
    )
    before = drawn.ordered(simulate(drawn.program(), LUNAR))
    faster = dataclasses.replace(drawn, prices=halved)
    after = faster.ordered(simulate(faster.program(), LUNAR))
    assert all(new.end_ns <= old.end_ns for new, old in zip(after, before, strict=True))


@given(drawn_programs(ddr=True))
def test_a_device_twice_as_fast_in_everything_takes_half_the_time(drawn: Drawn) -> None:
    def twice(cost: Price) -> Price:
        latency, busy = cost.latency_ns / 2, cost.busy_ns / 2
        return dataclasses.replace(cost, latency_ns=latency, busy_ns=busy)

    fast = dataclasses.replace(LUNAR, ddr_mb_per_s=2 * LUNAR.ddr_mb_per_s)
    before = simulate(drawn.program(), LUNAR)
    after = simulate(drawn.program(twice), fast)
    assert [time.end_ns * 2 for time in after] == [time.end_ns for time in before]


@given(st.integers(1, 3), st.integers(4, 24), st.data())
def test_few_physical_barriers_delay_tasks_but_all_are_run(
    physical: int, layers: int, data: st.DataObject
) -> None:
    """Barrier v sits in physical barrier v mod n: layer v feeds it, layer v + 1 waits for it."""
    rows = [
        (v + physical if v + physical < layers else -1, 1, int(v + 1 < layers), v % physical)
        for v in range(layers)
    ]
    queues: dict[str, list[Task]] = defaultdict(list)
    durations = data.draw(st.lists(st.integers(1, 9), min_size=layers, max_size=layers))
    for v, duration in enumerate(durations):
        wait = 1 << (v - 1) % physical if v else 0
        if physical == 1 and v:
            wait = 0  # a task cannot wait for the barrier whose place it is to take
        name = data.draw(st.sampled_from("ab"))
        queues[name].append(task(price(duration), wait, 1 << v % physical, v + 1))
    if physical == 1:
        rows = [(v + 1 if v + 1 < layers else -1, 1, 0, 0) for v in range(layers)]
    times = simulate(program(configs(*rows), **queues), LUNAR)
    assert makespan(times) == sum(durations), "each layer follows the one before it"
    assert len(times) == layers


# Prices


def descriptor(nbytes: int, src: int, dst: int, **fields: int) -> np.ndarray:
    record = np.zeros(1, abi.DMA_DESCRIPTOR)
    record["src"], record["dst"] = src, dst
    record["src_width"] = record["dst_width"] = nbytes
    for name, value in fields.items():
        record[name] = value
    return record[0]


def dma(nbytes: int, src: int, dst: int, **fields: int) -> Price:
    return Pricer(LUNAR).dma(descriptor(nbytes, src, dst, **fields), bus())


def test_a_transfer_knows_ddr_from_cmx() -> None:
    assert (dma(4096, IN_DDR, tile_base(0)).ddr_bytes, dma(4096, 0, IN_DDR).ddr_bytes) == (
        4096,
        8192,
    )
    inside = dma(4096, tile_base(0), tile_base(1))
    assert (inside.ddr_bytes, inside.nbytes, inside.tile) == (0, 4096, None)
    assert inside.latency_ns == pytest.approx(32 / 0.971)


def test_bits_above_an_address_say_nothing_about_where_it_is() -> None:
    assert dma(4096, 1 << 48 | tile_base(0), tile_base(1)).ddr_bytes == 0


def test_a_transfer_to_several_tiles_costs_as_one_to_one() -> None:
    assert dma(4096, IN_DDR, tile_base(0) | tile_base(1)) == dma(4096, IN_DDR, tile_base(0))


def test_short_runs_cost_more_and_joined_runs_do_not() -> None:
    """64 rows of 32 bytes: in CMX one after the other, in DDR 4096 bytes apart or not."""
    fields = {"cfg": 1, "dst_width": 64 * 32, "src_dim1": 63}
    apart = dma(32, IN_DDR, tile_base(0), src_stride1=4096, **fields)
    joined = dma(32, IN_DDR, tile_base(0), src_stride1=32, **fields)
    assert apart.nbytes == joined.nbytes == 64 * 32
    assert (apart.ddr_bytes, joined.ddr_bytes) == (64 * 64, 64 * 32)
    assert apart.busy_ns == pytest.approx(64 / 0.971)
    assert joined == dma(64 * 32, IN_DDR, tile_base(0))


def test_runs_join_up_to_the_first_gap() -> None:
    """[3, 2, 4 x 16 bytes]: the inner two dimensions lie together, the outer does not."""
    fields = {
        "cfg": 3,
        "dst_width": 384,
        "src_dim1": 3,
        "src_stride1": 16,
        "src_dim2": 1,
        "src_stride2": 64,
        "src_dim3": 2,
        "src_stride3": 4096,
    }
    assert dma(16, IN_DDR, tile_base(0), **fields).ddr_bytes == 3 * 128
    fields["src_stride2"] = 100
    assert dma(16, IN_DDR, tile_base(0), **fields).ddr_bytes == 6 * 64


def test_a_gather_pays_for_each_row_and_a_fill_reads_nothing() -> None:
    rows = {"cfg": abi.DmaCfg.SRC_LIST_RELATIVE | 1, "src_dim1": 9, "src_stride1": 4096}
    gather = dma(100, IN_DDR, tile_base(0), dst_width=1000, **rows)
    assert (gather.nbytes, gather.ddr_bytes) == (1000, 10 * 128)
    rows["src_stride1"] = 100
    assert dma(100, IN_DDR, tile_base(0), dst_width=1000, **rows) == gather, "rows in any order"
    fill = dma(1024, 0, tile_base(0), cfg=abi.DmaCfg.MEMSET_EN)
    assert (fill.ddr_bytes, fill.nbytes) == (0, 1024)
    assert fill.busy_ns == pytest.approx(16 / 0.971)


def test_a_transfer_of_seven_dimensions_is_a_fault() -> None:
    with pytest.raises(DeviceFault, match="7 dimensions"):
        dma(4, IN_DDR, tile_base(0), cfg=6)


def product(variants: list[tuple[int, int, int, int]], **fields: int) -> Price:
    registers = np.zeros(1, abi.DPU_REGISTERS)
    given = {
        "workload": abi.DpuWorkload.MATMUL,
        "act_type": DType.I8,
        "weight_type": DType.U4,
        "out_type": DType.FP16,
        "batch": 2,
        "m": 64,
        "n": 128,
        "k": 256,
    }
    for name, value in (given | fields).items():
        registers[name] = value
    parts = np.zeros(len(variants), abi.DPU_VARIANT)
    for part, (m_begin, m_end, n_begin, n_end) in zip(parts, variants, strict=True):
        part["m_begin"], part["m_end"] = m_begin, m_end
        part["n_begin"], part["n_end"] = n_begin, n_end
    return Pricer(LUNAR).dpu(registers[0], list(parts), 3, bus())


def test_a_product_is_the_sum_of_its_variants() -> None:
    whole = product([(0, 64, 0, 128)])
    halves = product([(0, 64, 0, 64), (0, 64, 64, 128)])
    assert whole.macs == halves.macs == 2 * 64 * 128 * 256
    assert whole.busy_ns == pytest.approx(whole.macs / 2048 / 1.7)
    assert halves.busy_ns == pytest.approx(whole.busy_ns)
    assert whole.nbytes == 2 * (64 * 256 + 128 * 256 // 2 + 64 * 128 * 2)
    assert halves.nbytes - whole.nbytes == 2 * 64 * 256, "activations are read again"
    assert (whole.engine, whole.tile) == (Engine.DPU, 3)


def test_an_accumulating_product_reads_what_it_adds_to() -> None:
    plain = product([(0, 64, 0, 128)], out_type=DType.FP32)
    adding = product([(0, 64, 0, 128)], out_type=DType.FP32, flags=abi.DpuFlag.ACCUMULATE)
    assert adding.nbytes - plain.nbytes == 2 * 64 * 128 * 4


@pytest.mark.parametrize(
    ("variant", "fields", "message"),
    [
        ((0, 65, 0, 128), {}, "variant of 65 x 128 in 64 x 128"),
        ((8, 8, 0, 128), {}, "variant of 0 x 128"),
        ((9, 8, 0, 128), {}, "variant of -1 x 128"),
        ((0, 64, 0, 128), {"act_type": 99}, "no element type has code 99"),
        ((0, 64, 0, 128), {"workload": 7}, "unknown DPU workload 7"),
    ],
)
def test_a_malformed_product_is_a_fault(
    variant: tuple[int, int, int, int], fields: dict[str, int], message: str
) -> None:
    with pytest.raises(DeviceFault, match=message):
        product([variant], **fields)


def test_a_kernel_is_priced_by_its_windows_and_its_grid() -> None:
    head = np.zeros(1, KERNEL_ARGS)
    head["window_count"], head["grid"] = 2, (4, 3, 2)
    windows = np.zeros(2, WINDOW)
    windows["cols"], windows["type"] = 64, DType.FP16
    windows["col_stride"] = (0, 2)
    args = head.tobytes() + windows.tobytes()
    cost = Pricer(LUNAR).shave(assemble("ld v0, w0\nexp v0, v0\nst w1, v0\nend"), args, 1, bus())
    assert cost.nbytes == 24 * (2 + 128), "the first window repeats one value"
    cycles = 2200 + 12 * (1 + 2) / 0.56
    assert cost.alone_ns == pytest.approx(cycles / 0.971)
    assert (cost.engine, cost.tile) == (Engine.SHAVE, 1)


# Blobs


def test_the_dense_layer_takes_as_long_as_a_pencil_says() -> None:
    found = spans(predict(blobs.dense_blob()))
    latency = 300 + 50 / 0.971
    word = 1 / (64 * 0.958589 * 0.971)
    x = latency + 128 * word
    weights = x + latency + 512 * word
    multiplied = weights + 640 / (32 * 8 * 0.971)  # reading 640 bytes; multiplying takes 4 cycles
    cut_off = multiplied + (2200 + 2 * 2 / 0.56) / 0.971  # two of four rows on each SHAVE
    expected = {
        "DMA port 0 DDR0": (0, x),
        "DMA port 0 DDR1": (x, weights),
        "DPU tile 00": (weights, multiplied),
        "SHAVE tile 00": (multiplied, cut_off),
        "DMA port 0 CMX0": (cut_off, cut_off + latency + 256 * word),
    }
    assert found.keys() == expected.keys()
    for name, span in expected.items():
        assert found[name] == pytest.approx(span), name


def test_each_task_says_what_it_does() -> None:
    loads, store, product, kernel = (
        [time for time in predict(blobs.dense_blob()) if time.queue == queue]
        for queue in ("DMA port 0 DDR", "DMA port 0 CMX", "DPU tile 0", "SHAVE tile 0")
    )
    assert [(one.nbytes, one.ddr_bytes, one.tile) for one in loads] == [
        (128, 128, None),
        (512, 512, None),
    ]
    assert (store[0].nbytes, store[0].engine) == (256, Engine.DMA)
    assert (product[0].macs, product[0].tile) == (4 * 16 * 8, 0)
    assert (kernel[0].nbytes, kernel[0].tile) == (2 * 4 * 16 * 4, 0)


def test_a_timeline_does_not_depend_on_the_weights() -> None:
    blob = blobs.dense_blob()
    weights = blobs.weights().tobytes()
    assert weights in blob
    assert predict(blob.replace(weights, bytes(len(weights)))) == predict(blob)


def test_a_loaded_inference_has_the_timeline_of_its_blob(bench, x: np.ndarray) -> None:
    inference = bench.load(blobs.dense_blob())
    bench.run(inference, x)
    assert predict_loaded(bench.space, inference.address, LUNAR) == predict(blobs.dense_blob())


@pytest.mark.parametrize("clock", ["dpu_mhz", "cmx_mhz", "ddr_mb_per_s"])
@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
def test_doubling_a_clock_never_makes_the_dense_layer_slower(
    platform: Platform, clock: str
) -> None:
    blob = blobs.dense_blob(platform.name)
    faster = dataclasses.replace(platform, **{clock: 2 * getattr(platform, clock)})
    assert makespan(predict(blob, faster)) <= makespan(predict(blob, platform))
    assert predict(blob, platform) == predict(blob), "the blob's own platform is the default"


def test_bytes_that_are_no_blob_are_refused() -> None:
    with pytest.raises(BlobError):
        predict(b"not a blob")


def test_a_blob_for_another_architecture_is_refused() -> None:
    with pytest.raises(BlobError, match="made for architecture"):
        predict(blobs.dense_blob("3720"), LUNAR)


@given(
    st.lists(
        st.tuples(st.integers(0, len(BLOB) // 8 - 1), st.binary(min_size=8, max_size=8)),
        min_size=1,
        max_size=3,
    )
)
def test_a_damaged_blob_has_a_timeline_or_a_typed_error(damage: list[tuple[int, bytes]]) -> None:
    blob = bytearray(BLOB)
    for word, content in damage:
        blob[word * 8 : word * 8 + 8] = content
    with contextlib.suppress(BlobError, DeviceFault, OutOfMemory):
        times = predict(bytes(blob))
        assert all(0 <= time.begin_ns <= time.end_ns < math.inf for time in times)
