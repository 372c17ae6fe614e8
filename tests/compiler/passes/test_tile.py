"""Choices of blocks: their price agrees with the predicted timeline, and they fit CMX."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.dialects import npu
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.errors import DoesNotFit
from compiler_layer.model import Model
from compiler_layer.passes.tile import Tile
from compiler_layer.passes.tile.attention import (
    AttentionChoice,
    AttentionProblem,
    choose_attention,
    price_attention,
)
from compiler_layer.passes.tile.machine import TASK_NS, Machine, cuts
from compiler_layer.passes.tile.matmul import (
    MatMulProblem,
    Strategy,
    candidates,
    choose_matmul,
    price_matmul,
)
from compiler_layer.passes.tile.tiling import price_of
from compiler_layer.schedule.barriers import Schedule
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.check import check_schedule
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.program import ScheduledProgram
from compiler_layer.schedule.tasks import Invocation
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.abi.tasks import DPU_MAX_DIM
from driver_layer.npu.timeline import predict

LUNAR = Machine(PLATFORMS["4000"], 4)


def matmul(m: int, n: int, k: int, element: str = "f16") -> str:
    a, b, y = (f"tensor<{r}x{c}x{element}>" for r, c in ((m, k), (n, k), (m, n)))
    return (
        f'func.func @main(%a: {a} {{ov.names = "a"}}, %b: {b} {{ov.names = "b"}}) -> '
        f'({y} {{ov.names = "y"}}) {{\n%y = npu.matmul(%a, %b) {{transpose_a = false, '
        f"transpose_b = true}} : ({a}, {b}) -> {y}\nfunc.return %y : {y}\n}}"
    )


def attention(heads: int, key_heads: int, m: int, length: int, depth: int, element: str) -> str:
    q, k = (
        f"tensor<1x{h}x{rows}x{depth}x{element}>" for h, rows in ((heads, m), (key_heads, length))
    )
    return (
        f'func.func @main(%q: {q} {{ov.names = "q"}}, %k: {k} {{ov.names = "k"}}, '
        f'%v: {k} {{ov.names = "v"}}) -> ({q} {{ov.names = "y"}}) {{\n'
        f"%y = npu.attention %q keys %k values %v {{scale = 0.1 : f64}} : "
        f"{q} keys {k} values {k} -> {q}\nfunc.return %y : {q}\n}}"
    )


def kernel(domain: tuple[int, ...], repeated: tuple[int, ...]) -> str:
    x, c = (f"tensor<{'x'.join(map(str, shape))}xf16>" for shape in (domain, repeated))
    return (
        f'func.func @main(%x: {x} {{ov.names = "x"}}, %c: {c} {{ov.names = "c"}}) -> '
        f'({x} {{ov.names = "y"}}) {{\n%y = npu.kernel(%x, %c) {{\n^bb0(%a: {x}, %b: {c}):\n'
        f"%r = ov.Multiply(%a, %b) : ({x}, {c}) -> {x}\nnpu.yield %r : {x}\n}} : "
        f"({x}, {c}) -> {x}\nfunc.return %y : {x}\n}}"
    )


def scheduled(text: str, platform: str) -> tuple[ScheduledProgram, Schedule]:
    """Tile and schedule a model, and check that the schedule is sound."""
    model, tile = Model.parse(text), Tile(platform)
    tile.apply(None, model.module)  # pyright: ignore[reportArgumentType]
    done = schedule(model, PLATFORMS[platform], tile.used_tiles())
    workspace = PLATFORMS[platform].workspace_bytes
    whole = expanded(done)
    check_schedule(whole, dependencies(whole.tasks), workspace)
    return done, whole


def predicted_ns(text: str) -> tuple[float, int]:
    """Return the time that the timeline predicts on 4000, and the number of tasks."""
    done, whole = scheduled(text, "4000")
    blob = emit_blob(Program("op", done, PLATFORMS["4000"], 4))
    return max(task.end_ns for task in predict(blob)), len(whole.tasks)


_SIZE = st.integers(1, 3000)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), platform=st.sampled_from(list(PLATFORMS)))
def test_the_choice_for_any_shape_is_scheduled_soundly(data: st.DataObject, platform: str) -> None:
    element = data.draw(st.sampled_from(["f16", "f32"]))
    match data.draw(st.sampled_from(["matmul", "attention", "kernel"])):
        case "matmul":
            text = matmul(*(data.draw(_SIZE) for _ in "mnk"), element)
        case "attention":
            key_heads = data.draw(st.integers(1, 3))
            heads = key_heads * data.draw(st.integers(1, 8))
            m, length = data.draw(st.integers(1, 500)), data.draw(_SIZE)
            text = attention(heads, key_heads, m, length, 64, element)
        case _:
            domain = (
                data.draw(st.integers(1, 32)),
                data.draw(st.integers(1, 200)),
                data.draw(_SIZE),
            )
            kept = data.draw(st.tuples(*[st.booleans()] * 3))
            text = kernel(
                domain, tuple(d if one else 1 for d, one in zip(domain, kept, strict=True))
            )
    scheduled(text, platform)


@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 1000), _SIZE, st.integers(1, 12000)),
    weights=st.sampled_from(["f16", "i8", "u4"]),
    group=st.sampled_from([0, 64, 128]),
    platform=st.sampled_from(list(PLATFORMS)),
)
def test_no_skipped_choice_is_cheaper(
    shape: tuple[int, int, int, int], weights: str, group: int, platform: str
) -> None:
    """The search stops at its lower bound, and finds the same choice as pricing all choices."""
    machine = Machine(PLATFORMS[platform], 2)
    tables = ((-(-shape[-1] // group), 2),) if group else ()
    problem = MatMulProblem(*shape, "f16", weights, "f16", group, tables)
    every = list(candidates(problem, machine))
    prices = [price_matmul(problem, choice, machine).ns for choice in every]
    assert choose_matmul(problem, machine) == every[prices.index(min(prices))]


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1024, 2048, 2048), (1024, 2048, 5632), (1, 8192, 2048), (256, 704, 256)]
)
def test_the_price_of_a_matmul_is_near_the_predicted_timeline(m: int, n: int, k: int) -> None:
    problem = MatMulProblem(1, m, n, k, "f16", "f16", "f16")
    priced = price_matmul(problem, choose_matmul(problem, LUNAR), LUNAR).ns
    predicted, tasks = predicted_ns(matmul(m, n, k))
    assert 0.6 * predicted <= priced <= 1.4 * (predicted + tasks * TASK_NS)


@pytest.mark.matrix
@pytest.mark.parametrize("shape", [(8, 1, 1024, 1024, 64), (4, 4, 2048, 4096, 128)])
def test_the_price_of_attention_is_near_the_predicted_timeline(
    shape: tuple[int, int, int, int, int],
) -> None:
    heads, key_heads, m, length, depth = shape
    problem = AttentionProblem(heads, key_heads, m, length, depth, depth, 1, "f16", "f16", "f16")
    priced = price_attention(problem, choose_attention(problem, LUNAR), LUNAR).ns
    predicted, tasks = predicted_ns(attention(*shape, "f16"))
    assert 0.6 * predicted <= priced <= 1.4 * (predicted + tasks * TASK_NS)


def test_the_price_of_attention_falls_with_the_reach_of_rows() -> None:
    """Rows attend to slightly over half of all positions: a unit's last row sets its reach."""
    whole = AttentionProblem(8, 2, 1024, 1024, 64, 64, 1, "f16", "f16", "f16", "f16")
    causal = replace(whole, reach=tuple(range(1, 1025)))
    prices = [price_attention(x, choose_attention(x, LUNAR), LUNAR).ns for x in (causal, whole)]
    assert 0.5 <= prices[0] / prices[1] <= 0.85


def test_many_rows_are_split_over_height_and_one_row_over_the_kernel() -> None:
    many = MatMulProblem(1, 1024, 4096, 2048, "f16", "u4", "f16")
    assert choose_matmul(many, LUNAR).strategy is Strategy.SPLIT_OVER_HEIGHT
    assert choose_matmul(replace(many, m=1), LUNAR).strategy is Strategy.SPLIT_OVER_KERNEL


def test_a_small_matmul_stays_on_one_tile() -> None:
    assert choose_matmul(MatMulProblem(1, 1, 64, 256, "f16", "f16", "f16"), LUNAR).tiles == 1


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "x",
    [
        MatMulProblem(1, 256, 2816, 1024, "f16", "f16", "f16"),
        MatMulProblem(1, 300, 5000, 2048, "f16", "u4", "f16", 128, ((16, 2), (16, 1))),
        MatMulProblem(8, 64, 128, 500, "f16", "f16", "f32", b_by_columns=True),
        MatMulProblem(1, 1, 32000, 4096, "i8", "i8", "f16", 4096, ((1, 2),), row_scales=True),
    ],
    ids=["f16", "u4", "batch", "i8"],
)
def test_the_cheapest_choice_is_found_without_pricing_all(x: MatMulProblem, platform: str) -> None:
    machine = Machine(PLATFORMS[platform], PLATFORMS[platform].tiles)
    cheapest = min(price_matmul(x, choice, machine).ns for choice in candidates(x, machine))
    assert price_matmul(x, choose_matmul(x, machine), machine).ns == cheapest


def test_choices_of_equal_layers_are_cached() -> None:
    problem = MatMulProblem(1, 77, 768, 256, "f16", "f16", "f16")
    choose_matmul(problem, LUNAR)
    before = choose_matmul.cache_info()
    assert choose_matmul(replace(problem), Machine(PLATFORMS["4000"], 4)) is not None
    after = choose_matmul.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def test_few_positions_take_one_pass_and_many_an_online_softmax() -> None:
    few = AttentionProblem(8, 4, 256, 256, 32, 32, 1, "f16", "f16", "f16", "f16")
    many = replace(few, m=4096, length=32768)
    assert choose_attention(few, LUNAR).positions == 256
    choice = choose_attention(many, LUNAR)
    assert choice.positions == choice.keys < 32768


def test_the_cmx_of_online_attention_does_not_grow_with_positions() -> None:
    small = Machine(PLATFORMS["4000"], 4)
    for length in (4096, 65536, 1 << 20):
        problem = AttentionProblem(1, 1, 4096, length, 128, 128, 1, "f32", "f32", "f32", "f32")
        assert choose_attention(problem, small).keys <= 4096


def test_attention_without_a_fitting_block_is_refused_with_its_size() -> None:
    wide = AttentionProblem(64, 1, 1, 64, 1 << 15, 1 << 15, 1, "f32", "f32", "f32")
    with pytest.raises(DoesNotFit, match="attention over 64 positions needs"):
        choose_attention(wide, LUNAR)


def test_a_row_that_must_not_be_cut_is_refused_with_the_op_that_needs_it() -> None:
    row = "tensor<2x2000000xf16>"
    softmax = (
        f'func.func @main(%x: {row} {{ov.names = "x"}}) -> ({row} {{ov.names = "y"}}) {{\n'
        f"%y = npu.kernel(%x) {{\n^bb0(%a: {row}):\n%t = ov.Tanh(%a) : ({row}) -> {row}\n"
        f'%r = ov.Softmax(%t) {{axis = 1 : i64, ov.name = "chances"}} : ({row}) -> {row}\n'
        f"npu.yield %r : {row}\n}} : ({row}) -> {row}\nfunc.return %y : {row}\n}}"
    )
    wanted = "a kernel of ov.Softmax 'chances' with rows of 2000000 needs 8000000 bytes"
    with pytest.raises(DoesNotFit, match=wanted):
        scheduled(softmax, "4000")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("repeated", [(1, 1), (1, 2_000_003), (3, 1), (3, 2_000_003)], ids=str)
def test_rows_that_do_not_fit_are_cut_if_columns_are_independent(
    repeated: tuple[int, int], platform: str
) -> None:
    _, whole = scheduled(kernel((3, 2_000_003), repeated), platform)
    work = [task.work for task in whole.tasks if isinstance(task.work, Invocation)]
    columns = [math.prod(one.grid) * one.windows[-1].region.shape[-1] for one in work]
    assert sum(columns) == 3 * 2_000_003


def test_a_row_that_fits_is_never_cut() -> None:
    """Fitting rows keep their blocks, so that compiled and cached blobs stay valid."""
    program, _ = scheduled(kernel((3, 200_000), (1, 1)), "4000")
    (op,) = [op.op for op in program.layout.ops if isinstance(op.op, npu.Kernel)]
    assert op.tile is not None
    assert op.tile.get_values()[-1] == 200_000


@pytest.mark.parametrize("rows", [1, 16])
def test_the_price_of_cut_rows_is_near_the_predicted_timeline(rows: int) -> None:
    text = kernel((rows, 256_155), (rows, 256_155))
    model, machine = Model.parse(text), Machine(PLATFORMS["4000"], 4)
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Kernel)]
    price = price_of(op, machine)
    assert price is not None
    predicted, tasks = predicted_ns(text)
    assert 0.6 * predicted <= price.ns <= 1.4 * (predicted + tasks * TASK_NS)


def test_a_kernel_that_needs_more_than_the_grids_dimensions_is_cut() -> None:
    shape = (2, 3, 4, 5, 6)
    program, done = scheduled(kernel(shape, (1, 3, 1, 5, 6)), "4000")
    (op,) = [op.op for op in program.layout.ops if isinstance(op.op, npu.Kernel)]
    assert op.tile is not None
    assert 1 in op.tile.get_values()
    work = [task.work for task in done.tasks]
    rows = [math.prod(one.grid) for one in work if isinstance(one, Invocation)]
    assert sum(rows) == math.prod(shape[:-1])


@given(length=st.integers(1, 40000), grain=st.sampled_from([1, 16, 128]))
def test_cuts_fall_from_the_full_length_to_one_grain(length: int, grain: int) -> None:
    sizes = list(cuts(length, grain))
    assert sizes[0] == length
    assert sizes[-1] <= grain
    assert all(a > b for a, b in itertools.pairwise(sizes))
    assert all(size % grain == 0 for size in sizes[1:])


def test_a_single_pass_is_cheaper_than_online_if_both_fit() -> None:
    choice = AttentionChoice(rows=4, keys=64, positions=64, tiles=2)
    problem = AttentionProblem(8, 4, 16, 256, 32, 32, 1, "f16", "f16", "f16", "f16")
    online = price_attention(problem, choice, LUNAR).ns
    single = price_attention(problem, replace(choice, positions=256), LUNAR).ns
    assert online > single, "an online softmax calls SHAVE for every block"


def test_a_matmul_with_more_channels_than_a_task_is_cut_even_with_one_scale() -> None:
    """The feed-forward of an 8 B model in 8 bits: 14,336 channels with one scale."""
    problem = MatMulProblem(1, 1, 4096, 14336, "f16", "u8", "f16", 14336, ((1, 2), (1, 1)))
    assert choose_matmul(problem, LUNAR).block[2] <= DPU_MAX_DIM
    groups = replace(problem, group=128, tables=((112, 2),))
    assert choose_matmul(groups, LUNAR).block[2] % 128 == 0


def test_tables_of_many_groups_make_cuts_of_channels_expensive() -> None:
    """A few bytes of each row take a complete word of the bus."""
    problem = MatMulProblem(1, 1, 8192, 3072, "f16", "u4", "f16", 128, ((24, 2), (24, 1)))
    choice = choose_matmul(problem, LUNAR)
    whole, cut = ((*choice.block[:2], k) for k in (3072, 384))
    prices = [price_matmul(problem, choice._replace(block=block), LUNAR) for block in (whole, cut)]
    assert prices[1].dma_ns > 1.25 * prices[0].dma_ns


def test_weights_stored_by_columns_are_loaded_in_their_layout() -> None:
    problem = MatMulProblem(1, 1, 768, 768, "f16", "f16", "f16")
    apart = replace(problem, b_by_columns=True)
    rows, columns = (price_matmul(x, choose_matmul(x, LUNAR), LUNAR) for x in (problem, apart))
    assert columns.dma_ns < 1.1 * rows.dma_ns


def test_gathered_matrices_are_cut_by_rows_only() -> None:
    """DMA looks up the begin of a matrix, and reads one contiguous run from there."""
    machine = Machine(PLATFORMS["4000"], 4)
    problem = MatMulProblem(8, 1, 4096, 8192, "f16", "f16", "f16")
    assert min(choice.block[2] for choice in candidates(problem, machine)) < 8192
    blocks = {choice.block for choice in candidates(replace(problem, chosen=True), machine)}
    assert {channels for _, _, channels in blocks} == {8192}
    assert max(columns for _, columns, _ in blocks) < 4096
