"""Host flash attention: tiles return the result of the full graph; only visible ones run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Negative
from host_attention.attentions import Attention, Bound, by_hand, whole
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import Device
from npuw_layer.errors import DeviceError
from npuw_layer.execution.host_attention.container import read_container, write_container
from npuw_layer.execution.host_attention.flash_device import FlashAttentionDevice
from npuw_layer.execution.host_attention.flash_model import LoadedFlash

LONGEST = 16

KINDS = {
    "f32": Attention(),
    "f16": Attention(element="f16"),
    "i8": Attention(i8=True),
    "f16 i8": Attention(element="f16", i8=True),
    "boolean": Attention(mask="boolean"),
    "biases": Attention(mask_heads=4),
    "one head": Attention(heads=1, group=3, mask="f16"),
    "a token": Attention(tokens=1, past=39),
    "as long as a tile": Attention(tokens=16, past=48),
    "ends inside of a tile": Attention(past=37),
    "a short past": Attention(past=5),
}
CLOSE = {"f16": 3e-3, "f16 i8": 3e-3}


def npu() -> LevelZeroDevice:
    return LevelZeroDevice(StaticCompiler(), "4000")


def loaded(attention: Attention, inner: Device, longest: int = LONGEST) -> LoadedFlash:
    device = FlashAttentionDevice(inner, longest)
    found = device.load(device.compile(attention.graph(), attention.config()))
    assert isinstance(found, LoadedFlash)
    return found


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [npu, InterpreterDevice])
def test_tiles_return_the_result_of_the_complete_graph(kind, make):
    attention, device = KINDS[kind], make()
    model = loaded(attention, device)
    bound = Bound(device, model)
    for seed, live in enumerate((0, 1, attention.past // 2, attention.past)):
        values = attention.values(seed, live)
        found = bound.run(values)
        for expected in (whole(attention, values), by_hand(attention, values)):
            assert np.abs(found - expected).max() < CLOSE.get(kind, 2e-6) * np.abs(expected).max()


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=18, deadline=None)
def test_tiles_return_the_result_of_the_complete_graph_for_any_mask(data: st.DataObject) -> None:
    """Shapes and masks are random, but tokens see themselves; invisible tiles do not run."""
    draw = data.draw
    attention = Attention(
        heads=draw(st.integers(1, 3)),
        group=draw(st.integers(1, 3)),
        tokens=draw(st.integers(1, 9)),
        past=draw(st.integers(1, 50)),
        width=draw(st.sampled_from([2, 8])),
        i8=draw(st.booleans()),
        mask=draw(st.sampled_from(["f32", "boolean"])),
    )
    device = InterpreterDevice()
    model = loaded(attention, device, draw(st.integers(1, 60)))
    values = attention.values(draw(st.integers(0, 99)), attention.past)
    # Ranges that are invisible to all or some rows: skipped tiles, and tiles with empty rows.
    allowed = attention.allowed(attention.past)
    for _ in range(draw(st.integers(0, 4))):
        begin, row = (draw(st.integers(0, most)) for most in (attention.past, attention.tokens))
        allowed[row // 2 :, begin : begin + draw(st.integers(0, 50))] = False
    allowed[:, attention.past :] |= np.eye(attention.tokens, dtype=bool)
    values["mask"] = attention.mask_values(allowed, np.random.default_rng(0))
    found = Bound(device, model).run(values)
    expected = by_hand(attention, values)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    own = [allowed[:, tile.own : tile.end].any() for tile in model.tiles]
    assert model.runs == sum(own)


@pytest.mark.parametrize("make", [npu, InterpreterDevice])
def test_only_tiles_with_live_positions_run(make) -> None:
    attention, device = Attention(past=64), make()
    model = loaded(attention, device)
    bound = Bound(device, model)
    for live, expected in ((0, 0), (1, 1), (16, 1), (17, 2), (64, 4)):
        before = model.runs
        bound.run(attention.values(0, live))
        assert model.runs - before == expected


@pytest.mark.matrix
@pytest.mark.parametrize(("begin", "runs"), [(0, 4), (16, 3), (37, 2), (53, 1)])
@pytest.mark.parametrize("make", [npu, InterpreterDevice])
def test_tiles_before_a_window_are_skipped(make, begin: int, runs: int) -> None:
    attention, device = Attention(past=64), make()
    model = loaded(attention, device)
    bound = Bound(device, model)
    bound.run(attention.values(1, 64))
    values = attention.values(0, 64)
    allowed = attention.allowed(64)
    allowed[:, :begin] = False
    allowed[:4, 30:48] = False  # in a tile that runs, some rows see nothing
    values["mask"] = attention.mask_values(allowed, np.random.default_rng(0))
    before = model.runs
    found = bound.run(values)
    expected = by_hand(attention, values)
    assert np.abs(found - expected).max() < 2e-6 * np.abs(expected).max()
    assert model.runs - before == runs


def test_a_tile_between_two_running_tiles_may_be_skipped() -> None:
    attention, device = Attention(past=64), npu()
    model = loaded(attention, device)
    values = attention.values(0, 64)
    allowed = attention.allowed(64)
    allowed[:, 16:32] = False
    values["mask"] = attention.mask_values(allowed, np.random.default_rng(0))
    expected = by_hand(attention, values)
    assert np.abs(Bound(device, model).run(values) - expected).max() < 2e-6 * abs(expected).max()
    assert model.runs == 3


@pytest.mark.parametrize("make", [npu, InterpreterDevice])
def test_nan_of_one_run_does_not_reach_the_next(make) -> None:
    attention, device = Attention(), make()
    bound = Bound(device, loaded(attention, device))
    values = attention.values(1, 40)
    expected = bound.run(values)
    assert np.isnan(bound.run(values | {"v_past": values["v_past"] * np.nan})).all()
    assert np.isnan(bound.run(values | {"q": values["q"] * np.nan})).all()
    assert np.array_equal(bound.run(values), expected)


@pytest.mark.parametrize("forbidden", [-np.inf, float(np.finfo(np.float32).min), -65504.0])
@pytest.mark.parametrize("make", [npu, InterpreterDevice])
def test_padding_and_invisible_positions_do_not_affect_results(make, forbidden: float) -> None:
    """Rows that attend to nothing are finite, and others are independent of invisible positions: of
    their values, and of the results of earlier runs."""
    attention, device = Attention(), make()
    bound = Bound(device, loaded(attention, device))
    bound.run(attention.values(7, attention.past))
    values = attention.values(1, 20, used=5)
    values["mask"][values["mask"] < -1] = forbidden
    found = bound.run(values)
    assert np.isfinite(found).all()
    expected = by_hand(attention, values)[:, :, :5]
    assert np.abs(found[:, :, :5] - expected).max() < 2e-6 * np.abs(expected).max()
    for name in ("k_past", "v_past"):
        values[name][:, 20:] = 1e4
    for name in ("k_new", "v_new"):
        values[name][:, :, 5:] = 1e4
    assert np.array_equal(bound.run(values)[:, :, :5], found[:, :, :5])


def test_programs_that_read_one_cache_share_its_tiles() -> None:
    """Programs of chunks that begin at different rows are an example."""
    attention, device = Attention(), npu()
    model = loaded(attention, device)
    one, other = Bound(device, model), Bound(device, model)
    for name in model.attention.stored:
        place = one.arena.tensors[name]
        other.program.bind(name, place.memory, place.offset)
    values = attention.values(3, attention.past)
    found = one.run(values)
    made = len(model._bound)
    assert np.array_equal(other.run(values), found)
    assert len(model._bound) == made == len(model.tiles)
    del one, other
    assert not model._bound, "the tiles are freed with their last user"


def test_tiles_of_a_chunk_share_a_program_and_its_memory() -> None:
    """The memory for scores is far larger than the rows that are copied to the program."""
    attention, device = Attention(tokens=64, past=64), npu()
    model = loaded(attention, device)
    bound = Bound(device, model)
    bound.run(attention.values(0, 2 * LONGEST))
    before = device.allocated_bytes
    values = attention.values(1, 64)
    found = bound.run(values)
    assert np.abs(found - by_hand(attention, values)).max() < 2e-6 * np.abs(found).max()
    assert model.runs == 2 + 4
    assert device.allocated_bytes == before


def test_two_conversations_do_not_disturb_each_other() -> None:
    attention, device = Attention(), npu()
    model = loaded(attention, device)
    both = [(Bound(device, model), attention.values(seed, 30)) for seed in (1, 2)]
    expected = [by_hand(attention, values) for _, values in both]
    with ThreadPoolExecutor() as pool:
        turns = [pool.submit(bound.run, values) for bound, values in both * 10]
    for number, turn in enumerate(turns):
        want = expected[number % 2]
        assert np.abs(turn.result() - want).max() < 2e-6 * np.abs(want).max()


def test_a_model_without_attention_over_a_cache_runs_unchanged() -> None:
    attention, device = Attention(), InterpreterDevice()
    graph = attention.graph()
    y = graph.outputs[0].value
    graph.set_outputs([("y", GraphBuilder(graph).op(Negative, y))])
    flash = FlashAttentionDevice(device, LONGEST)
    model = flash.load(flash.compile(graph, attention.config()))
    values = attention.values(0, 9)
    expected = -whole(attention, values)
    assert np.array_equal(Bound(device, model).run(values), expected)


def test_the_error_of_a_binding_names_the_tensor() -> None:
    attention, device = Attention(), npu()
    program = loaded(attention, device).create_program()
    with pytest.raises(DeviceError, match="not bound: q, mask"):
        program.run()
    with pytest.raises(DeviceError, match="no input or output 'k'"):
        program.bind("k", device.allocate(64), 0)
    with pytest.raises(DeviceError, match=r"'q' needs \d+ bytes: its memory of 64 bytes"):
        program.bind("q", device.allocate(64), 0)


@pytest.mark.parametrize("other", [Attention(width=4), Attention(tokens=2)])
def test_programs_of_another_attention_are_rejected(other: Attention) -> None:
    device = FlashAttentionDevice(InterpreterDevice(), LONGEST)
    own, foreign = (
        read_container(device.compile(each.graph(), each.config())) for each in (Attention(), other)
    )
    for mixed in (replace(own, tile=foreign.tile), replace(own, last=foreign.last)):
        with pytest.raises(DeviceError, match="has the program of another one"):
            device.load(write_container(mixed))
