"""Hardware ops cut into tasks compute on the simulated device what they mean, however they are cut.

Ops are annotated by hand with blocks that the ``tile`` pass might not choose; each schedule is
checked by the independent checker on its way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.utils.exceptions import VerifyException

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_attr, ints_attr
from compiler_layer.elements import NUMPY
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.check import check_ddr, check_schedule
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.expand import expanded
from compiler_layer.schedule.hazards import hazards
from compiler_layer.schedule.place_ddr import lifetimes
from compiler_layer.schedule.tasks import Region, Transfer
from compiler_layer.testing.pass_test import parse_passes
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind

PLATFORM = PLATFORMS["4000"]
LOWEST = np.finfo(np.float32).min

Arrays = Mapping[str, np.ndarray]


def model_of(inputs: Arrays, body: str, element: str, shape: Sequence[int]) -> Model:
    """A model of one op ``%y``; inputs of type ``u4`` have names that begin with 'nibbles'."""
    arguments = ", ".join(
        f'%{name}: {_type(_element(name, array), array.shape)} {{ov.names = "{name}"}}'
        for name, array in inputs.items()
    )
    result = _type(element, shape)
    return Model.parse(
        f'func.func @main({arguments}) -> ({result} {{ov.names = "y"}}) {{\n'
        f"{body} -> {result}\nfunc.return %y : {result}\n}}"
    )


def _type(element: str, shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element.replace('u', 'ui')}>"


def _element(name: str, array: np.ndarray) -> str:
    return (
        "u4"
        if name.startswith("nibbles")
        else {"f": "f", "u": "u"}[array.dtype.kind] + str(8 * array.dtype.itemsize)
    )


def run(model: Model, inputs: Arrays, tiles: int) -> np.ndarray:
    """Schedule a tiled model, check the schedule, run the blob, and give its only output."""
    done = schedule(model, PLATFORM, tiles)
    whole = expanded(done)
    tasks = whole.tasks
    check_schedule(whole, hazards(tasks, whole.queues), PLATFORM.workspace_bytes)
    spans = lifetimes(tasks)
    check_ddr(list(spans), spans)
    blob = emit_blob(Program("op", done, PLATFORM, tiles))
    space = AddressSpace()
    inference = HostParsedInference(blob, PLATFORM)
    inference.load(space)
    given_inputs = [space.allocate(_packed(k, v).nbytes, MemoryKind.DMA) for k, v in inputs.items()]
    for allocation, (name, array) in zip(given_inputs, inputs.items(), strict=True):
        allocation.write(0, _packed(name, array).tobytes())
    (port,) = model.outputs
    expected = np.zeros(port.type.get_shape(), NUMPY[_result_element(port.type)])
    output = space.allocate(expected.nbytes, MemoryKind.DMA)
    inference.apply_input_output([one.address for one in given_inputs], [output.address])
    Device(PLATFORM).run_inference(space, inference.address)
    return output.data.view(expected.dtype).reshape(expected.shape)


def _packed(name: str, array: np.ndarray) -> np.ndarray:
    return array[..., ::2] | array[..., 1::2] << 4 if name.startswith("nibbles") else array


def _result_element(kind: object) -> str:
    return "f16" if "f16" in str(kind) else "f32"


def attention_model(inputs: Arrays, parts: int, element: str) -> Model:
    keys = [f"%k{i}" for i in range(parts)]
    values = [f"%v{i}" for i in range(parts)]
    types = {
        f"%{name}": _type(_element(name, array), array.shape) for name, array in inputs.items()
    }
    masked = "mask" in inputs
    names = f"%q keys {', '.join(keys)} values {', '.join(values)}" + " mask %mask" * masked
    kinds = (
        f"{types['%q']} keys {', '.join(types[k] for k in keys)} "
        f"values {', '.join(types[v] for v in values)}" + f" mask {types.get('%mask')}" * masked
    )
    if "ks0" in inputs:
        for name, letter in (("key_scales", "ks"), ("value_scales", "vs")):
            scales = [f"%{letter}{i}" for i in range(parts)]
            names += f" {name} {', '.join(scales)}"
            kinds += f" {name} {', '.join(types[each] for each in scales)}"
    body = f"%y = npu.attention {names} {{scale = 0.25 : f64}} : {kinds}"
    return model_of(inputs, body, element, inputs["q"].shape)


def tiled(model: Model, block: Sequence[int], tiles: int) -> Model:
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention | npu.MatMul | npu.Kernel)]
    op.properties["tile"] = ints_attr(block)
    op.properties["tiles"] = int_attr(tiles)
    return model


def attention_inputs(
    draw: np.random.Generator, heads: tuple[int, int], m: int, lengths: Sequence[int], element: str
) -> dict[str, np.ndarray]:
    """Queries, and keys and values in parts; about as wide as those of models."""

    def tensor(count: int, rows: int) -> np.ndarray:
        return draw.standard_normal((1, count, rows, 16)).astype(NUMPY[element])

    inputs = {"q": 3 * tensor(heads[0], m)}
    inputs |= {f"k{i}": tensor(heads[1], rows) for i, rows in enumerate(lengths)}
    return inputs | {f"v{i}": tensor(heads[1], rows) for i, rows in enumerate(lengths)}


def in_8_bits(inputs: dict[str, np.ndarray], parts: int) -> dict[str, np.ndarray]:
    """The same keys and values as u8 with a scale for each row of a head, very different ones."""
    draw, found = np.random.default_rng(1), dict(inputs)
    for name in [f"{letter}{i}" for i in range(parts) for letter in "kv"]:
        rows = inputs[name]
        found[name] = draw.integers(0, 256, rows.shape).astype(np.uint8)
        scales = np.exp(draw.uniform(-9, -5, (*rows.shape[:3], 1)))
        found[f"{name[0]}s{name[1:]}"] = scales.astype(rows.dtype)
    return found


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_attention_in_any_blocks_computes_attention(data: st.DataObject) -> None:
    element = data.draw(st.sampled_from(["f32", "f16"]))
    key_heads = data.draw(st.integers(1, 3))
    heads = (key_heads * data.draw(st.integers(1, 3)), key_heads)
    m = data.draw(st.integers(1, 9))
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=2))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs = attention_inputs(draw, heads, m, lengths, element)
    length = sum(lengths)
    if data.draw(st.booleans()):
        shape = (1, data.draw(st.sampled_from([1, heads[0]])), data.draw(st.sampled_from([1, m])))
        allowed = draw.random((*shape, length)) < 0.5
        inputs["mask"] = np.where(allowed, np.float32(0), LOWEST)
    if data.draw(st.booleans()):
        inputs = in_8_bits(inputs, len(lengths))
    model = attention_model(inputs, len(lengths), element)
    check_in_any_blocks(data, model, inputs, Interpreter(model).run(inputs)["y"])


def check_in_any_blocks(
    data: st.DataObject, model: Model, inputs: Arrays, expected: np.ndarray
) -> None:
    """Cut an attention as is drawn, in one pass and online, run it and compare."""
    m, element = inputs["q"].shape[2], str(expected.dtype)
    length = sum(array.shape[2] for name, array in inputs.items() if re.fullmatch(r"k\d", name))
    keys = data.draw(st.integers(1, length))
    rows, tiles = data.draw(st.integers(1, m)), data.draw(st.integers(1, 4))
    for positions in (length, keys):
        actual = run(tiled(model, (rows, keys, positions), tiles), inputs, tiles)
        limit = {"float32": 1e-5, "float16": 4e-3}[element] * np.abs(expected).max()
        assert np.abs(actual.astype("f8") - expected).max() <= limit


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_no_row_may_reach_takes_no_part(data: st.DataObject) -> None:
    """Positions beyond the reach of all rows are poison, and yet the rest is as it should be."""
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
    expected = Interpreter(attention_model(inputs, len(lengths), element)).run(inputs)["y"]
    poisoned = beyond(inputs, len(lengths), max(reach))
    model = attention_model(poisoned, len(lengths), element)
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    op.properties["reach"] = DenseArrayBase.from_list(i64, reach)
    check_in_any_blocks(data, model, poisoned, expected)


def beyond(inputs: dict[str, np.ndarray], parts: int, reach: int) -> dict[str, np.ndarray]:
    """The same, with NaNs for keys, values and masks from a position on."""
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


@pytest.mark.parametrize("reach", [[1, 2], [1, 2, 0], [1, 65, 2], [-1, 1, 1]])
def test_a_reach_that_is_none_is_refused(reach: list[int]) -> None:
    """Of other text than the compiler's own; rows are three, positions 64."""
    inputs = attention_inputs(np.random.default_rng(4), (2, 1), 3, [64], "f16")
    model = attention_model(inputs, 1, "f16")
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    op.properties["reach"] = DenseArrayBase.from_list(i64, reach)
    with pytest.raises(VerifyException, match="reaches 1 to 64 positions, for each of 3 rows"):
        op.verify()


@pytest.mark.parametrize("positions", [64, 16])
def test_as_many_positions_are_loaded_as_rows_may_reach(positions: int) -> None:
    """Two units, one for each four rows: keys, values, their scales and the mask."""
    inputs = attention_inputs(np.random.default_rng(4), (2, 1), 8, [64], "f16")
    inputs["mask"] = np.zeros((1, 1, 8, 64), np.float32)
    model = tiled(attention_model(in_8_bits(inputs, 1), 1, "f16"), (4, 16, positions), 1)
    (op,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    op.properties["reach"] = DenseArrayBase.from_list(i64, [3, 1, 2, 5, 20, 9, 7, 1])
    loaded: dict[str, int] = {}
    for task in expanded(schedule(model, PLATFORM, 1)).tasks:
        if isinstance(task.work, Transfer) and isinstance(task.work.target, Region):
            name = task.work.target.buffer.name
            loaded[name] = loaded.get(name, 0) + task.work.target.nbytes
    rows = {name.removeprefix("attention."): count for name, count in loaded.items()}
    reached = 5 + 20
    assert (rows["keys"], rows["values"]) == (16 * reached, 16 * reached)
    assert (rows["key_scales"], rows["value_scales"]) == (2 * reached, 2 * reached)
    assert rows["mask"] == 4 * 4 * reached


@pytest.mark.parametrize("positions", [40, 16])
def test_scales_of_many_heads_are_loaded_for_those_that_are_needed(positions: int) -> None:
    """16 heads with an f32 each are more than DMA moves at once; tiles share the loads of three."""
    inputs = attention_inputs(np.random.default_rng(5), (16, 16), 2, [24, 16], "f32")
    inputs = in_8_bits(inputs, 2)
    model = attention_model(inputs, 2, "f32")
    expected = Interpreter(model).run(inputs)["y"]
    actual = run(tiled(model, (2, 16, positions), 3), inputs, 3)
    assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("lowest", [LOWEST, -np.inf], ids=["lowest", "-inf"])
def test_what_is_masked_contributes_exactly_nothing(element: str, lowest: float) -> None:
    """Whole blocks that are masked, before and behind a row's first position, too."""
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
        model = attention_model(each, 1, element)
        results.append(run(tiled(model, (4, 8, 8), 2), each, 2).copy())
    assert np.array_equal(results[0], results[1])


@pytest.mark.parametrize("lowest", [LOWEST, -np.inf], ids=["lowest", "-inf"])
def test_a_row_that_is_masked_everywhere_gives_what_a_single_pass_gives(lowest: float) -> None:
    inputs = attention_inputs(np.random.default_rng(3), (2, 2), 4, [48], "f32")
    mask = np.zeros((1, 1, 4, 48), np.float32)
    mask[..., 1:3, :] = lowest
    inputs["mask"] = mask
    model = attention_model(inputs, 1, "f32")
    single = run(tiled(model, (4, 48, 48), 2), inputs, 2).copy()
    online = run(tiled(model, (4, 16, 16), 2), inputs, 2)
    np.testing.assert_allclose(online, single, rtol=1e-5, atol=1e-6)
    zeros = np.isneginf(lowest)
    assert (online[:, :, 1:3] == 0).all() == zeros, "the mean of all values, or nothing"


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_attention_of_4096_by_4096_fits_every_platform(platform: str, element: str) -> None:
    kind = _type(element, (1, 2, 4096, 128))
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


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_product_in_any_blocks_computes_the_product(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["f32", "f16", "u8", "nibbles", "integers"]))
    m, n = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    groups, group = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([16, 32]))
    k = groups * group
    integers = kind == "integers"
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    element = "f16" if kind == "f16" else "f32"
    inputs = {"a": draw.standard_normal((m, k)).astype(NUMPY[element])}
    if integers:
        inputs["a"] = draw.integers(0, 256, (m, k)).astype(np.uint8)
    quantised = kind in ("u8", "nibbles", "integers")
    name = "nibbles" if kind == "nibbles" else "b"
    if quantised:
        top = 16 if kind == "nibbles" else 256
        inputs[name] = draw.integers(0, top, (n, k)).astype(np.uint8)
        tables = (n, 1 if integers else groups)
        inputs["scales"] = draw.random(tables).astype(np.float32)
        inputs["zeros"] = draw.integers(0, top, tables).astype(np.uint8)
    else:
        inputs[name] = draw.standard_normal((n, k)).astype(NUMPY[element])
    types = {key: _type(_element(key, array), array.shape) for key, array in inputs.items()}
    tables = " scales %scales zeros %zeros" * quantised
    kinds = f" scales {types.get('scales')} zeros {types.get('zeros')}" * quantised
    split = data.draw(st.sampled_from("mn"))
    whole = ", a_scale = 0.25 : f64, a_zero = 77 : i64" * integers
    model = model_of(
        inputs,
        f"%y = npu.matmul(%a, %{name}){tables} {{transpose_a = false, transpose_b = true, "
        f'split = "{split}"{whole}}} : ({types["a"]}, {types[name]}){kinds}',
        element,
        (m, n),
    )
    expected = Interpreter(model).run(inputs)["y"]
    block = (
        data.draw(st.integers(1, m)),
        min(n, 16 * data.draw(st.integers(1, 5))),
        group * data.draw(st.integers(1, groups)),
    )
    tiles = data.draw(st.integers(1, 4))
    actual = run(tiled(model, block, tiles), inputs, tiles)
    limit = {"f32": 1e-5, "f16": 2e-3}[element] * np.abs(expected).max()
    assert np.abs(actual.astype("f8") - expected).max() <= limit


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_kernel_in_any_blocks_computes_the_kernel(data: st.DataObject) -> None:
    """Operands that repeat in any dimensions are loaded once for all blocks that share them."""
    domain = tuple(data.draw(st.integers(1, 6)) for _ in range(3))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    repeats = data.draw(st.tuples(*[st.booleans()] * 3))
    shape = tuple(1 if one else d for d, one in zip(domain, repeats, strict=True))
    inputs = {"x": draw.random(domain).astype("f4"), "c": draw.random(shape).astype("f4")}
    x, c = (_type("f32", array.shape) for array in inputs.values())
    model = model_of(
        inputs,
        f"%y = npu.kernel(%x, %c) {{\n^bb0(%a: {x}, %b: {c}):\n"
        f"%r = ov.Multiply(%a, %b) : ({x}, {c}) -> {x}\nnpu.yield %r : {x}\n}} : ({x}, {c})",
        "f32",
        domain,
    )
    block = (*(data.draw(st.integers(1, d)) for d in domain[:-1]), domain[-1])
    tiles = data.draw(st.integers(1, 4))
    expected = inputs["x"] * inputs["c"]
    assert np.array_equal(run(tiled(model, block, tiles), inputs, tiles), expected)


def test_attention_of_4096_by_4096_is_computed_as_the_compiler_cuts_it() -> None:
    """Every block of it, on the simulated device; each row against numpy in f64."""
    draw = np.random.default_rng(11)
    inputs = {
        name: draw.standard_normal((1, 1, 4096, 64)).astype("f2") for name in ("q", "k0", "v0")
    }
    model = attention_model(inputs, 1, "f16")
    (tile,) = parse_passes("tile")
    tile.apply(None, model.module)  # pyright: ignore[reportArgumentType]
    q, k, v = (inputs[name][0, 0].astype("f8") for name in ("q", "k0", "v0"))
    scores = q @ k.T * 0.25
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights @ v / weights.sum(1, keepdims=True)
    actual = run(model, inputs, tile.used_tiles())[0, 0]
    assert np.abs(actual - expected).max() <= 4e-3 * np.abs(expected).max()
