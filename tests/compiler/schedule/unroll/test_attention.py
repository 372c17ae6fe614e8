"""Unrolled attention: single-pass and online, with masks, and with a reach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering import beside_by_turns
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.utils.exceptions import VerifyException

from compiler_layer.dialects import npu
from compiler_layer.elements import NUMPY
from compiler_layer.emit.dma import descriptor
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.check import check_schedule
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.tasks import Region, Transfer
from compiler_layer.testing.pass_test import parse_passes
from driver_layer.abi.platforms import PLATFORMS

LOWEST = np.finfo(np.float32).min

Arrays = Mapping[str, np.ndarray]


def attention_inputs(
    draw: np.random.Generator,
    heads: tuple[int, int],
    m: int,
    lengths: Sequence[int],
    element: str,
    sequences: int = 1,
) -> dict[str, np.ndarray]:
    """Return queries, keys and values (in parts per sequence), distributed as in real models."""

    def tensor(count: int, rows: int, batch: int = 1) -> np.ndarray:
        return draw.standard_normal((batch, count, rows, 16)).astype(NUMPY[element])

    inputs = {"q": 3 * tensor(heads[0], m, sequences)}
    parts = [*lengths] * sequences
    inputs |= {f"k{i}": tensor(heads[1], rows) for i, rows in enumerate(parts)}
    return inputs | {f"v{i}": tensor(heads[1], rows) for i, rows in enumerate(parts)}


def in_8_bits(inputs: dict[str, np.ndarray], parts: int) -> dict[str, np.ndarray]:
    """Return inputs with u8 keys and values, with very different scales for the rows of heads."""
    draw, found = np.random.default_rng(1), dict(inputs)
    for name in [f"{letter}{i}" for i in range(parts) for letter in "kv"]:
        rows = inputs[name]
        found[name] = draw.integers(0, 256, rows.shape).astype(np.uint8)
        scales = np.exp(draw.uniform(-9, -5, (*rows.shape[:3], 1)))
        found[f"{name[0]}s{name[1:]}"] = scales.astype(rows.dtype)
    return found


def transposed(inputs: dict[str, np.ndarray], parts: Iterable[int]) -> dict[str, np.ndarray]:
    """Return inputs with some parts of the values stored channel by channel, [1, H, D, S]."""
    found = dict(inputs)
    for i in parts:
        found[f"t{i}"] = np.ascontiguousarray(found.pop(f"v{i}").swapaxes(2, 3))
    return found


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_attention_in_any_blocks_computes_attention(unroll: Any, data: st.DataObject) -> None:
    element = data.draw(st.sampled_from(["f32", "f16"]))
    key_heads = data.draw(st.integers(1, 3))
    heads = (key_heads * data.draw(st.integers(1, 3)), key_heads)
    m = data.draw(st.integers(1, 9))
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=2))
    sequences = data.draw(st.integers(1, 3))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs = attention_inputs(draw, heads, m, lengths, element, sequences)
    length, parts = sum(lengths), len(lengths) * sequences
    if data.draw(st.booleans()):
        most = (sequences, heads[0], m)
        shape = tuple(data.draw(st.sampled_from([1, size])) for size in most)
        allowed = draw.random((*shape, length)) < 0.5
        inputs["mask"] = np.where(allowed, np.float32(0), LOWEST)
    if data.draw(st.booleans()):
        inputs = in_8_bits(inputs, parts)
    if data.draw(st.booleans()):
        inputs = transposed(inputs, data.draw(st.sets(st.integers(0, parts - 1))))
    model = unroll.attention(inputs, parts, element)
    check_in_any_blocks(unroll, data, model, inputs, Interpreter(model).run(inputs)["y"])


def check_in_any_blocks(
    unroll: Any, data: st.DataObject, model: Model, inputs: Arrays, expected: np.ndarray
) -> None:
    """Tile an attention with drawn blocks, single-pass and online, run it and compare."""
    (sequences, _, m, _), element = inputs["q"].shape, str(expected.dtype)
    keys_of_all = [array for name, array in inputs.items() if re.fullmatch(r"k\d+", name)]
    length = sum(array.shape[2] for array in keys_of_all) // sequences
    keys = data.draw(st.integers(1, length))
    rows, tiles = data.draw(st.integers(1, m)), data.draw(st.integers(1, 4))
    for positions in (length, keys):
        actual = unroll.run(unroll.tiled(model, (rows, keys, positions), tiles), inputs, tiles)
        limit = {"float32": 1e-5, "float16": 4e-3}[element] * np.abs(expected).max()
        assert np.abs(actual.astype("f8") - expected).max() <= limit


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_positions_beyond_the_reach_do_not_affect_results(unroll: Any, data: st.DataObject) -> None:
    """Positions beyond the reach of all rows are NaN, and the results are still correct."""
    element = data.draw(st.sampled_from(["f32", "f16"]))
    heads, m = data.draw(st.sampled_from([(1, 1), (4, 2), (3, 3)])), data.draw(st.integers(1, 9))
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=2))
    length = sum(lengths)
    reach = data.draw(st.lists(st.integers(1, length), min_size=m, max_size=m))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs = attention_inputs(draw, heads, m, lengths, element)
    if data.draw(st.booleans()):
        inputs = in_8_bits(inputs, len(lengths))
    shape = (1, data.draw(st.sampled_from([1, heads[0]])), m, length)
    allowed = draw.random(shape) < 0.7
    allowed[..., 0] = True
    allowed &= np.arange(length) < np.array(reach)[:, None]
    inputs["mask"] = np.where(allowed, np.float32(0), LOWEST)
    expected = Interpreter(unroll.attention(inputs, len(lengths), element)).run(inputs)["y"]
    poisoned = beyond(inputs, len(lengths), max(reach))
    model = unroll.attention(poisoned, len(lengths), element)
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    op.properties["reach"] = DenseArrayBase.from_list(i64, reach)
    check_in_any_blocks(unroll, data, model, poisoned, expected)


def beyond(inputs: dict[str, np.ndarray], parts: int, reach: int) -> dict[str, np.ndarray]:
    """Return inputs with NaNs in keys, values and masks from a position on."""
    found, begin = dict(inputs), 0
    for part in range(parts):
        behind = max(reach - begin, 0)
        for letter in "kv":
            name = f"{letter}s{part}" if f"{letter}s{part}" in inputs else f"{letter}{part}"
            found[name] = inputs[name].copy()
            found[name][:, :, behind:] = np.nan
        begin += inputs[f"k{part}"].shape[2]
    found["mask"] = inputs["mask"].copy()
    found["mask"][..., reach:] = np.nan
    return found


def test_a_batch_equals_its_sequences_one_by_one(unroll: Any) -> None:
    """Results are bit-identical: neither other sequences nor the choice of tiles changes them."""
    inputs = attention_inputs(np.random.default_rng(6), (6, 2), 1, [40, 1], "f16", sequences=3)
    allowed = np.random.default_rng(7).random((3, 1, 1, 41)) < 0.6
    inputs["mask"] = np.where(allowed, np.float32(0), LOWEST)
    model = unroll.tiled(unroll.attention(inputs, 6, "f16"), (1, 41, 41), 4)
    together = unroll.run(model, inputs, 4).copy()
    for number in range(3):
        own = {name: inputs[name][number : number + 1] for name in ("q", "mask")}
        for letter in "kv":
            own |= {f"{letter}{i}": inputs[f"{letter}{2 * number + i}"] for i in range(2)}
        model = unroll.tiled(unroll.attention(own, 2, "f16"), (1, 41, 41), 1)
        assert np.array_equal(unroll.run(model, own, 1)[0], together[number])


@pytest.mark.parametrize("rows", [[8, 8, 8], [8, 2, 8, 3]])
def test_a_batch_of_unequal_sequences_is_refused(unroll: Any, rows: list[int]) -> None:
    inputs = attention_inputs(np.random.default_rng(4), (2, 1), 1, rows, "f16")
    inputs["q"] = np.repeat(inputs["q"], 2, 0)
    with pytest.raises(CompilerUsageError, match="keys of equal length for 2 sequences"):
        unroll.attention(inputs, len(rows), "f16").verify()


@pytest.mark.parametrize("reach", [[1, 2], [1, 2, 0], [1, 65, 2], [-1, 1, 1]])
def test_an_invalid_reach_is_refused(unroll: Any, reach: list[int]) -> None:
    """A reach may come from IR text that the compiler did not write; here: 3 rows, 64 positions."""
    inputs = attention_inputs(np.random.default_rng(4), (2, 1), 3, [64], "f16")
    model = unroll.attention(inputs, 1, "f16")
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    op.properties["reach"] = DenseArrayBase.from_list(i64, reach)
    with pytest.raises(VerifyException, match="a reach of 1 to 64 positions for each of 3 rows"):
        op.verify()


@pytest.mark.parametrize("positions", [64, 16])
def test_only_positions_within_the_reach_are_loaded(unroll: Any, positions: int) -> None:
    """Two units of four rows each: keys, values, their scales and the mask."""
    inputs = attention_inputs(np.random.default_rng(4), (2, 1), 8, [64], "f16")
    inputs["mask"] = np.zeros((1, 1, 8, 64), np.float32)
    model = unroll.tiled(unroll.attention(in_8_bits(inputs, 1), 1, "f16"), (4, 16, positions), 1)
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    op.properties["reach"] = DenseArrayBase.from_list(i64, [3, 1, 2, 5, 20, 9, 7, 1])
    loaded: dict[str, int] = {}
    for task in expanded(schedule(model, unroll.platform, 1)).tasks:
        if isinstance(task.work, Transfer) and isinstance(task.work.target, Region):
            name = task.work.target.buffer.name
            loaded[name] = loaded.get(name, 0) + task.work.target.nbytes
    rows = {name.removeprefix("attention."): count for name, count in loaded.items()}
    reached = 5 + 20
    assert (rows["keys"], rows["values"]) == (16 * reached, 16 * reached)
    assert (rows["key_scales"], rows["value_scales"]) == (2 * reached, 2 * reached)
    assert rows["mask"] == 4 * 4 * reached


@pytest.mark.parametrize("positions", [64, 16])
def test_transposed_values_are_loaded_channel_by_channel(unroll: Any, positions: int) -> None:
    """DMA moves runs of the cache's positions, not single numbers; the new row is scattered."""
    inputs = attention_inputs(np.random.default_rng(4), (2, 1), 1, [63, 1], "f16")
    model = unroll.attention(transposed(inputs, [0]), 2, "f16")
    done = schedule(unroll.tiled(model, (1, 16, positions), 1), unroll.platform, 1)
    loads = [
        descriptor(task.work)
        for task in expanded(done).tasks
        if isinstance(task.work, Transfer)
        and isinstance(task.work.target, Region)
        and task.work.target.buffer.name == "attention.values"
    ]
    runs = [min(load["src_width"], load["dst_width"]) for load in loads]
    assert runs == [2 * 16, 2 * 16, 2 * 16, 2 * 15, 2]


@pytest.mark.matrix
@pytest.mark.parametrize("positions", [40, 16])
def test_scales_of_many_heads_are_loaded_only_for_needed_heads(unroll: Any, positions: int) -> None:
    """16 f32 scales fill a DMA word, so units load only their heads; three tiles share loads."""
    inputs = attention_inputs(np.random.default_rng(5), (16, 16), 2, [24, 16], "f32")
    inputs = in_8_bits(inputs, 2)
    model = unroll.attention(inputs, 2, "f32")
    expected = Interpreter(model).run(inputs)["y"]
    actual = unroll.run(unroll.tiled(model, (2, 16, positions), 3), inputs, 3)
    assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.matrix
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("lowest", [LOWEST, -np.inf], ids=["lowest", "-inf"])
def test_masked_positions_contribute_exactly_nothing(
    unroll: Any, element: str, lowest: float
) -> None:
    """Mask complete blocks as well, before and behind a row's first visible position."""
    draw = np.random.default_rng(7)
    inputs = attention_inputs(draw, (2, 1), 8, [64], element)
    allowed = np.zeros((1, 1, 8, 64), bool)
    for row in range(8):
        allowed[..., row, 24 : 33 + row] = True
    inputs["mask"] = np.where(allowed, np.float32(0), np.float32(lowest))
    changed = dict(inputs)
    for name, factor in (("k0", 5), ("v0", 1000)):
        outside = np.broadcast_to(~allowed.any((0, 1, 2))[:, None], inputs[name].shape)
        changed[name] = np.where(outside, inputs[name] * factor, inputs[name]).astype(
            NUMPY[element]
        )
    results = []
    for each in (inputs, changed):
        model = unroll.attention(each, 1, element)
        results.append(unroll.run(unroll.tiled(model, (4, 8, 8), 2), each, 2).copy())
    assert np.array_equal(results[0], results[1])


@pytest.mark.matrix
@pytest.mark.parametrize("lowest", [LOWEST, -np.inf], ids=["lowest", "-inf"])
def test_a_fully_masked_row_is_equal_in_single_pass_and_online(unroll: Any, lowest: float) -> None:
    inputs = attention_inputs(np.random.default_rng(3), (2, 2), 4, [48], "f32")
    mask = np.zeros((1, 1, 4, 48), np.float32)
    mask[..., 1:3, :] = lowest
    inputs["mask"] = mask
    model = unroll.attention(inputs, 1, "f32")
    single = unroll.run(unroll.tiled(model, (4, 48, 48), 2), inputs, 2).copy()
    online = unroll.run(unroll.tiled(model, (4, 16, 16), 2), inputs, 2)
    np.testing.assert_allclose(online, single, rtol=1e-5, atol=1e-6)
    zeros = np.isneginf(lowest)
    assert (online[:, :, 1:3] == 0).all() == zeros, "the mean of all values, or zeros"


@pytest.mark.matrix
@pytest.mark.parametrize(("platform", "element"), beside_by_turns(PLATFORMS, ["f32", "f16"]))
def test_attention_of_4096_by_4096_fits_every_platform(
    unroll: Any, platform: str, element: str
) -> None:
    kind = unroll.type(element, (1, 2, 4096, 128))
    model = Model.parse(
        f'func.func @main(%q: {kind} {{ov.names = "q"}}, %k: {kind} {{ov.names = "k"}}, '
        f'%v: {kind} {{ov.names = "v"}}) -> ({kind} {{ov.names = "y"}}) {{\n'
        f"%y = npu.attention %q keys %k values %v {{scale = 0.1 : f64}} : "
        f"{kind} keys {kind} values {kind} -> {kind}\nfunc.return %y : {kind}\n}}"
    )
    (tile,) = parse_passes(f'tile{{platform="{platform}"}}')
    tile.apply(None, model.module)  # pyright: ignore[reportArgumentType]
    tiles = tile.used_tiles()
    done = expanded(schedule(model, PLATFORMS[platform], tiles))
    check_schedule(done, dependencies(done.tasks), PLATFORMS[platform].workspace_bytes)


@pytest.mark.long
def test_attention_of_512_by_4096_matches_numpy_with_the_compilers_blocks(unroll: Any) -> None:
    """Run every block on the simulated device, and compare each row with numpy in f64."""
    draw = np.random.default_rng(11)
    inputs = {
        name: draw.standard_normal((1, 1, rows, 64)).astype("f2")
        for name, rows in (("q", 512), ("k0", 4096), ("v0", 4096))
    }
    model = unroll.attention(inputs, 1, "f16")
    (tile,) = parse_passes("tile")
    tile.apply(None, model.module)  # pyright: ignore[reportArgumentType]
    q, k, v = (inputs[name][0, 0].astype("f8") for name in ("q", "k0", "v0"))
    scores = q @ k.T * 0.25
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights @ v / weights.sum(1, keepdims=True)
    actual = unroll.run(model, inputs, tile.used_tiles())[0, 0]
    assert np.abs(actual - expected).max() <= 4e-3 * np.abs(expected).max()
