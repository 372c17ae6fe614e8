"""A mixture whose experts the device selects itself, in one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.execution.experts.test_conversations import SMALL, check, talk
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, indexing, quantize, reduce, scatter, shape
from compiler_layer.dialects.ov.activation import Swish
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import bool_attr, int_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.elements import NUMPY
from compiler_layer.model import Model
from npuw_layer import Core
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.protocols import Device
from npuw_layer.errors import ModelError
from npuw_layer.llm.compiled import compile_llm
from npuw_layer.options import parse_options
from npuw_layer.options.base import DEVICE_ROUTED, EXPERTS

ROUTED = {"NPUW_LLM_GENERATE_MOE_HINT": "DEVICE_ROUTED"}
STACKED = ("qwen3_moe_int8", "qwen3_moe_int4", "qwen3_moe_deep_fp16")
CONFIG = {
    "INFERENCE_PRECISION_HINT": "f32",
    "NPU_PLATFORM": "4000",
    "NPU_TILES": "-1",
    EXPERTS: DEVICE_ROUTED,
}
EXPERT_COUNT, SLOTS, CHANNELS, INNER = 7, 2, 64, 48
WIDE = 640
"""Channels of an expert that is cut into blocks."""

Expected = Callable[[str], dict[str, np.ndarray]]


@pytest.mark.matrix
@pytest.mark.parametrize("name", STACKED)
def test_the_npu_returns_the_results_of_openvino(exported, expected: Expected, name):
    check(Core(), exported(name), expected(name), **ROUTED)


@pytest.mark.matrix
@pytest.mark.parametrize("device", ["CPU", "OPENVINO_CPU"])
def test_other_devices_run_the_same_graph(exported, expected: Expected, device):
    name = "qwen3_moe_int4"
    check(Core(), exported(name), expected(name), **ROUTED, NPUW_DEVICES=device)


@pytest.mark.long
def test_experts_with_separate_weight_tensors_are_rejected(exported):
    with pytest.raises(ModelError, match="each expert's weights are a separate tensor"):
        Core().compile_model(exported("mixtral_int4"), "NPU", SMALL | ROUTED)


@pytest.mark.long
@pytest.mark.parametrize("name", ["qwen3_moe_fp16", "qwen3_moe_int4"])
def test_a_token_reads_only_its_chosen_experts(exported, name):
    """Two layers of sixteen experts with three matrices of 96 x 64; a token chooses six."""
    read: list[float] = []
    for hint in ("DENSE", "DEVICE_ROUTED"):
        npu = LevelZeroDevice(StaticCompiler(), "4000")
        given = {"NPUW_LLM_GENERATE_MOE_HINT": hint, "INFERENCE_PRECISION_HINT": "f16"}
        llm = compile_llm(exported(name), npu, parse_options(SMALL | given))
        generate = llm.programs[llm.plan.generate[0]]
        read.append(npu.predict(generate).ddr_bytes)
    # A group of 32 elements of 4 bits has a scale of 16 bits.
    width = 2 if name.endswith("fp16") else 0.5 + 2 / 32
    saved = 2 * (16 - 6) * 3 * 96 * 64 * width
    # Short runs read complete bursts of the bus.
    assert saved <= read[0] - read[1] <= 1.5 * saved


@pytest.mark.long
def test_a_routed_model_is_cached_exported_and_imported(exported, expected: Expected, tmp_path):
    name = "qwen3_moe_int4"
    core, path = Core(), exported(name)
    cached = {"CACHE_DIR": str(tmp_path / "cache")}
    core.compile_model(path, "NPU", SMALL | cached)
    before = len(list((tmp_path / "cache").glob("*.blob")))
    compiled = core.compile_model(path, "NPU", SMALL | ROUTED | cached)
    assert len(list((tmp_path / "cache").glob("*.blob"))) == before + 1, "the generate model"
    compiled.export_model(tmp_path / "model.blob")
    imported = core.import_model(tmp_path / "model.blob", "NPU", {"MODEL_PTR": str(path)})
    _, said = talk(imported.create_infer_request(), expected(name)["prompt_100"], 5)
    assert said == expected(name)["greedy"].tolist()[:5]


@pytest.mark.long
def test_two_concurrent_conversations(exported, expected: Expected):
    """Together they make twelve choices among sixteen experts."""
    name = "qwen3_moe_int4"
    compiled = Core().compile_model(
        exported(name), "NPU", SMALL | ROUTED | {"NPUW_LLM_BATCH_SLOTS": 2}
    )
    engine = compiled.create_batching()
    requests = [engine.open() for _ in range(2)]
    prompts = [expected(name)["prompt_7"][0, :length] for length in (7, 4)]
    futures = [one.submit(ids) for one, ids in zip(requests, prompts, strict=True)]
    said: list[list[int]] = [[], []]
    for _ in range(4):
        while engine.wait(0):
            engine.step()
        for number, future in enumerate(futures):
            said[number].append(int(future.result(0).argmax()))
            futures[number] = requests[number].submit(np.array(said[number][-1:]))
    whole = Core().compile_model(exported(name), "NPU", SMALL)
    alone = [talk(whole.create_infer_request(), ids[None], 4)[1] for ids in prompts]
    assert said == alone


def stack(g: GraphBuilder, element: str, rows: int, columns: int) -> SSAValue:
    """Return random matrices of all experts, f32."""
    draw = np.random.default_rng(rows)
    if element in ("f16", "f32"):
        values = draw.standard_normal((EXPERT_COUNT, rows, columns)) / np.sqrt(columns)
        stored = g.constant(values.astype(NUMPY[element]))
        return stored if element == "f32" else g.convert(stored, "f32")
    groups = columns // 16
    low, high = (-8, 8) if element == "i4" else (0, 256)
    values = draw.integers(low, high, (EXPERT_COUNT, rows, groups, 16))
    kind = np.int8 if element == "i4" else np.uint8
    stored = g.add(Constant.inline(values.astype(kind), element)).output
    scale = g.constant(draw.random((EXPERT_COUNT, rows, groups, 1), np.float32) / high)
    zeros = draw.integers(100, 150, (EXPERT_COUNT, rows, groups, 1)).astype(np.uint8)
    zero = [g.constant(zeros)] if element == "u8" else []
    wide = g.op(quantize.Dequantize, stored, scale, zero, destination_type=StringAttr("f32"))
    return g.reshape(wide, EXPERT_COUNT, rows, columns)


def mixture(element: str, tokens: int, inner: int = INNER) -> Model:
    """Build y = the sum over the experts with the highest scores, weighted by their softmax."""
    inputs = {"x": (tokens, CHANNELS), "scores": (tokens, EXPERT_COUNT)}
    model, (x, scores) = Model.build([(name, tensor("f32", dims)) for name, dims in inputs.items()])
    g = GraphBuilder(model)
    chosen = g.add(
        indexing.TopK.make(
            [g.op(reduce.Softmax, scores, axis=int_attr(1)), g.scalar(SLOTS)],
            axis=int_attr(-1),
            mode=StringAttr("max"),
            sort=StringAttr("value"),
            stable=bool_attr(False),
            index_element_type=StringAttr("i64"),
        )
    )
    copies = g.ints(EXPERT_COUNT, tokens, CHANNELS)
    every = g.op(shape.Broadcast, x, copies, mode=StringAttr("numpy"))
    gate = g.op(Swish, g.matmul(every, stack(g, element, inner, CHANNELS), True), [])
    y = g.matmul(gate, stack(g, element, CHANNELS, inner), True)
    put = g.op(
        scatter.ScatterElementsUpdate,
        g.constant(np.zeros((tokens, EXPERT_COUNT), np.float32)),
        chosen.results[1],
        chosen.results[0],
        g.ints(1),
        reduction=StringAttr("none"),
        use_init_val=bool_attr(True),
    )
    column = g.reshape(g.transpose(put, 1, 0), EXPERT_COUNT, tokens, 1)
    weighted = g.op(elementwise.Multiply, y, column)
    model.set_outputs(
        [("y", g.op(reduce.ReduceSum, weighted, g.ints(0), keep_dims=bool_attr(False)))]
    )
    return model


class Running:
    """A model on a device, with its own memory."""

    def __init__(self, device: Device, model: Model, config: Mapping[str, str]) -> None:
        loaded = device.load(device.compile(model, config))
        self._arena = Arena(device, [*loaded.inputs, *loaded.outputs])
        self._program = loaded.create_program()
        self._arena.bind(self._program)

    def run(self, x: np.ndarray, scores: np.ndarray) -> np.ndarray:
        self._arena["x"][...] = x
        self._arena["scores"][...] = scores
        self._program.run()
        return self._arena["y"].copy()


@pytest.fixture(scope="module", params=["f32", "f16", "u8", "i4"])
def both(request: pytest.FixtureRequest) -> tuple[Running, Running]:
    """Return all experts on the host, and the chosen ones on the NPU; 3 tokens choose 2 each."""
    return in_both_ways(mixture(request.param, 3))


def in_both_ways(model: Model) -> tuple[Running, Running]:
    npu = LevelZeroDevice(StaticCompiler(), "4000")
    dense = {**CONFIG, EXPERTS: ""}
    return Running(InterpreterDevice(), model.clone(), dense), Running(npu, model, CONFIG)


@pytest.mark.matrix
@settings(max_examples=20, deadline=None)
@given(st.lists(st.permutations(range(EXPERT_COUNT)), min_size=3, max_size=3), st.integers(0, 99))
def test_any_choice_returns_the_results_of_the_dense_graph(both, order, seed):
    x = np.random.default_rng(seed).standard_normal((3, CHANNELS)).astype(np.float32)
    scores = np.array(order, np.float32)
    whole, chosen = (one.run(x, scores) for one in both)
    assert np.abs(whole).max() > 0
    assert np.abs(chosen - whole).max() <= 1e-5 * np.abs(whole).max()


@pytest.mark.parametrize("element", ["f16", "u8"])
def test_wide_experts_are_cut_into_blocks(element):
    draw = np.random.default_rng(1)
    x = draw.standard_normal((3, CHANNELS)).astype(np.float32)
    scores = draw.permuted(np.tile(np.arange(EXPERT_COUNT), (3, 1)), axis=1).astype(np.float32)
    whole, chosen = (one.run(x, scores) for one in in_both_ways(mixture(element, 3, WIDE)))
    assert np.abs(chosen - whole).max() <= 1e-5 * np.abs(whole).max()


def test_experts_too_wide_for_the_dpu_are_rejected():
    with pytest.raises(ModelError, match="has 8208 channels; the DPU takes at most 8192"):
        LevelZeroDevice(StaticCompiler(), "4000").compile(mixture("f16", 1, 8208), CONFIG)


def test_nan_scores_are_not_a_failure_of_the_device(both):
    nothing = np.full((3, EXPERT_COUNT), np.nan, np.float32)
    both[1].run(np.zeros((3, CHANNELS), np.float32), nothing)
