"""Soundness of schedules: no overlaps, no races, no deadlocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.compile import compile_model
from compiler_layer.errors import DoesNotFit
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.model import Model
from compiler_layer.pipeline import Options, lower
from compiler_layer.schedule.barriers import PhasePosition, assign_barriers, queues_of
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.check import check_barriers, check_cmx, check_ddr, check_schedule
from compiler_layer.schedule.dependencies import accesses, dependencies
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.layout import BufferLayout
from compiler_layer.schedule.order import order_steps
from compiler_layer.schedule.place_ddr import lifetimes, place_ddr, touches
from compiler_layer.schedule.program import Phase, Run, ScheduledProgram
from compiler_layer.schedule.tasks import MatMulTask, Region, Step, Task, Transfer
from compiler_layer.schedule.views import Buffer, Space, View
from driver_layer.abi.platforms import PLATFORMS

CMX_BYTES = 4096


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Draw steps that load from two tensors, multiply, and store to one of them or to a third."""
    tensors = [Buffer(f"t{i}", Space.SCRATCH, 1024, i) for i in range(3)]
    weights = Buffer("w", Space.CONSTANT, 1024)
    steps: list[Step] = []
    kept: list[tuple[int, Region]] = []
    for number in range(draw(st.integers(1, 25))):
        tile = draw(st.integers(0, 1))
        reusable = [region for owner, region in kept if owner == tile]
        step = Step(number)
        if reusable and draw(st.booleans()):
            act = draw(st.sampled_from(reusable))
        else:
            act = _load(step, draw(st.sampled_from(tensors)), draw(_SIZES), tile)
            kept = [*kept[-2:], (tile, act)]
        weight = _load(step, weights, draw(_SIZES), tile)
        out = Region.dense("out", "f16", (1, 1, draw(_SIZES)), (tile,))
        step.work.append(MatMulTask(tile, act, weight, out))
        target = View.dense(draw(st.sampled_from(tensors)), "f16", out.shape)
        step.stores.append(Transfer(out, target, (tile,)))
        steps.append(step)
    return steps


_SIZES = st.integers(1, 256)


def _load(step: Step, source: Buffer, elements: int, tile: int) -> Region:
    region = Region.dense(source.name, "f16", (1, 1, elements), (tile,))
    step.loads.append(Transfer(View.dense(source, "f16", (1, 1, elements)), region, (tile,)))
    return region


@settings(max_examples=18, deadline=None)
@given(steps=programs(), physical=st.sampled_from([16, 32, 64]))
def test_any_program_is_scheduled_soundly(steps: list[Step], physical: int) -> None:
    tasks = order_steps(steps, CMX_BYTES).tasks
    place_ddr(lifetimes(tasks))
    after = dependencies(tasks)
    check_schedule(assign_barriers(tasks, after, physical, queues_of(tasks, 2)), after, CMX_BYTES)
    spans = lifetimes(tasks)
    check_ddr(list(spans), spans)


@settings(max_examples=18, deadline=None)
@given(steps=programs(), cuts=st.sets(st.integers(1, 40), max_size=3), physical=st.integers(8, 40))
def test_a_program_of_several_phases_is_scheduled_soundly(
    steps: list[Step], cuts: set[int], physical: int
) -> None:
    """A phase's only information about the others is whether they exist."""
    tasks = order_steps(steps, CMX_BYTES).tasks
    scratch = place_ddr(lifetimes(tasks))
    bounds = sorted({0, len(tasks)} | {cut for cut in cuts if cut < len(tasks)})
    queues = queues_of(tasks, 2)
    phases: list[Phase] = []
    for begin, end in itertools.pairwise(bounds):
        standing = PhasePosition(first=begin == 0, last=end == len(tasks))
        part, theirs = tasks[begin:end], queues[begin:end]
        after = dependencies(part, theirs, standing.first)
        made = assign_barriers(part, after, physical, theirs, standing)
        phases.append(Phase(made, [Run({}, 0)]))
    whole = expanded(ScheduledProgram(BufferLayout(), [], [], phases, scratch))
    assert [task.work for task in whole.tasks] == [task.work for task in tasks]
    check_schedule(whole, dependencies(whole.tasks), CMX_BYTES)


@settings(max_examples=12, deadline=None)
@given(steps=programs())
def test_every_conflict_is_a_direct_or_transitive_dependency(steps: list[Step]) -> None:
    """Compare with all pairs of tasks and all pairs of bytes they touch."""
    tasks = order_steps(steps, CMX_BYTES).tasks
    place_ddr(lifetimes(tasks))
    after = dependencies(tasks)
    touched = [list(accesses(index, task)) for index, task in enumerate(tasks)]
    reached: list[set[int]] = []
    for number, direct in enumerate(after):
        reached.append(set(direct).union(*(reached[other] for other in direct)))
        for earlier in range(number):
            conflict = any(
                a.memory == b.memory
                and a.begin < b.end
                and b.begin < a.end
                and (a.write or b.write)
                and a.owner != b.owner
                for a in touched[number]
                for b in touched[earlier]
            )
            assert not conflict or earlier in reached[number]


def test_a_step_larger_than_cmx_is_refused() -> None:
    step = Step(0)
    _load(step, Buffer("w", Space.CONSTANT, 8192), 4096, 0)
    with pytest.raises(DoesNotFit, match="a tile has 4096"):
        order_steps([step], CMX_BYTES)


def test_weights_of_the_next_step_are_loaded_before_this_one_computes() -> None:
    weights = Buffer("w", Space.CONSTANT, 1024)
    tensor = Buffer("t", Space.SCRATCH, 1024)
    steps: list[Step] = []
    for number in range(2):
        step = Step(number)
        act = _load(step, tensor, 8, 0)
        weight = _load(step, weights, 8, 0)
        out = Region.dense("out", "f16", (1, 1, 8), (0,))
        step.work.append(MatMulTask(0, act, weight, out))
        step.stores.append(Transfer(out, View.dense(tensor, "f16", (1, 1, 8)), (0,)))
        steps.append(step)
    kinds = [_kind(task) for task in order_steps(steps, CMX_BYTES).tasks]
    assert kinds == ["t", "w", "w", "product", "store", "t", "product", "store"]


def _kind(task: Task) -> str:
    if isinstance(task.work, MatMulTask):
        return "product"
    assert isinstance(task.work, Transfer)
    source = task.work.source
    return source.buffer.name if isinstance(source, View) else "store"


def _transfers(sizes: Sequence[int], op: int, load: bool = True) -> list[Task]:
    """Return tasks that move ``sizes`` elements between DDR and tile 0, all with one buffer."""
    tasks: list[Task] = []
    for size in sizes:
        ddr = View.dense(Buffer("t", Space.SCRATCH, 2 * size), "f16", (size,))
        cmx = Region.dense("c", "f16", (size,), (0,))
        tasks.append(Task(Transfer(ddr, cmx, (0,)) if load else Transfer(cmx, ddr, (0,)), op))
    return tasks


def test_queues_depend_on_the_engine_and_the_source_of_a_transfer() -> None:
    region = Region.dense("c", "f16", (1, 1, 8), (3,))
    tasks = [*_transfers([8], 0), *_transfers([8], 0, load=False)]
    tasks.append(Task(MatMulTask(3, region, region, region), 0))
    assert queues_of(tasks, ports=2) == [("dma_ddr", 0), ("dma_cmx", 0), ("dpu", 3)]


@settings(max_examples=18, deadline=None)
@given(sizes=st.lists(st.integers(1, 1 << 20), max_size=40), ports=st.integers(1, 3))
def test_ports_move_nearly_equal_bytes_for_every_op(sizes: list[int], ports: int) -> None:
    tasks = [*_transfers(sizes, 0), *_transfers(sizes, 1)]
    queues = queues_of(tasks, ports)
    assert queues[: len(sizes)] == queues[len(sizes) :], "equal ops are distributed equally"
    moved = [0] * ports
    for size, (_, port) in zip(sizes, queues, strict=False):
        moved[port] += 2 * size
    # The start of a transfer counts as 16 KiB; two ports never differ by more than one transfer.
    most = 2 * max(sizes, default=0) + (1 << 14) * (len(sizes) + 1)
    assert max(moved) - min(moved) <= most


def test_the_checker_detects_an_overlap_and_a_missing_wait() -> None:
    """Check the independent checker itself."""
    steps = [Step(0), Step(1)]
    for step in steps:
        act = _load(step, Buffer("a", Space.CONSTANT, 64), 8, 0)
        out = Region.dense("out", "f16", (1, 1, 8), (0,))
        step.work.append(MatMulTask(0, act, act, out))
    tasks = order_steps(steps, CMX_BYTES).tasks
    after = dependencies(tasks)
    good = assign_barriers(tasks, after, 16, queues_of(tasks, 2))
    product = next(i for i, task in enumerate(tasks) if isinstance(task.work, MatMulTask))
    good.waits[product].clear()
    with pytest.raises(AssertionError, match="consumers of barrier"):
        check_barriers(good, after)
    for task in tasks:
        if isinstance(task.work, MatMulTask):
            task.work.out.buffer.offset = task.work.act.buffer.offset
    with pytest.raises(AssertionError, match="overlap"):
        check_cmx(tasks, CMX_BYTES)


@settings(max_examples=18, deadline=None)
@given(data=st.data(), shape=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_views_address_the_bytes_that_numpy_addresses(
    data: st.DataObject, shape: Sequence[int]
) -> None:
    memory = np.arange(int(np.prod(shape)), dtype=np.uint16)
    view = View.dense(Buffer("b", Space.SCRATCH, memory.nbytes), "f16", tuple(shape))
    array = memory.reshape(shape)
    for _ in range(data.draw(st.integers(0, 3))):
        match data.draw(st.sampled_from(["transpose", "slice", "reshape"])):
            case "transpose":
                order = data.draw(st.permutations(range(len(view.shape))))
                view, array = view.transposed(order), array.transpose(order)
            case "slice":
                cuts = [slice(data.draw(st.integers(0, d - 1)), d) for d in view.shape]
                view, array = view.sliced(cuts), array[tuple(cuts)]
            case _:
                target = (int(np.prod(view.shape)),)
                reshaped = view.reshaped(target)
                # numpy has to copy exactly where a view cannot express the shape
                assert (reshaped is not None) == np.shares_memory(array.reshape(target), memory)
                if reshaped is not None:
                    view, array = reshaped, array.reshape(target)
    seen = np.ndarray(view.shape, np.uint16, memory, view.offset, view.strides)
    assert np.array_equal(seen, array)


@pytest.fixture(scope="module")
def static_llama(llama_8m: Path) -> Model:
    model = read_folder(llama_8m)
    shapes = {"input_ids": (1, 32), "attention_mask": (1, 96), "position_ids": (1, 32)}
    shapes |= {variable.name: (1, 4, 64, 32) for variable in model.variables()}
    model.set_input_shapes(shapes | {"beam_idx": (1,)})
    return model


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "tiles", "precision"),
    [
        *(("4000", 1, "f16"), ("4000", 2, "f32"), ("4000", 4, "f16"), ("4000", 6, "f32")),
        *(("3720", 2, "f16"), ("5010", 3, "f32")),
    ],
)
def test_a_real_model_is_scheduled_soundly(
    static_llama: Model, name: str, tiles: int, precision: str
) -> None:
    model = static_llama.clone()
    lower(model, Options(precision, name, tiles=tiles))
    platform = PLATFORMS[name]
    done = expanded(schedule(model, platform, tiles))
    after = dependencies(done.tasks)
    check_schedule(done, after, platform.workspace_bytes)
    spans = touches(done.tasks)
    check_ddr(list(spans), spans)


def test_equal_input_produces_equal_bytes(static_llama: Model) -> None:
    blobs = {compile_model(static_llama.clone(), Options()) for _ in range(2)}
    assert len(blobs) == 1
