"""A host-routed mixture returns the results of the dense graph, for any choice of experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.npuw.execution.experts.counting import CountingNpu
from tests.npuw.splitting import split

from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.partition.parts import cut_parts
from compiler_layer.pipeline import Options, lower_graph
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.protocols import Device, LoadedModel, Program
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.execution.experts.container import read_container, write_container
from npuw_layer.execution.experts.device import TAG, HostRoutedDevice, routed_experts
from npuw_layer.weights.bank import WeightsBank

CONFIG = {
    "INFERENCE_PRECISION_HINT": "f32",
    "NPU_PLATFORM": "4000",
    "NPU_TILES": "-1",
    "ENABLE_WEIGHTLESS": "YES",
}
FAMILIES = (
    *("mixtral_int4", "mixtral_int8", "qwen2_moe_fp16", "dbrx_fp16"),
    *("qwen3_moe_fp16", "qwen3_moe_int8", "qwen3_moe_int4"),
)
"""Sums by expert and of stacked weights; each format; weights in files and outside files."""

TOKENS, CHUNK = 11, 4
"""Neither is a multiple of the other, so some rows are padding."""


@dataclass
class Bound:
    """A mixture's program with its own memory."""

    program: Program
    arena: Arena
    names: Mapping[str, str]

    def run(self, rows: np.ndarray, ids: np.ndarray, weights: np.ndarray) -> np.ndarray:
        for what, values in (("rows", rows), ("ids", ids), ("weights", weights)):
            own = self.arena[self.names[what]]
            own[...] = values.reshape(own.shape)
        self.program.run()
        return self.arena[self.names["output"]].reshape(len(ids), -1).copy()


@dataclass
class Case:
    """A mixture, dense and host-routed."""

    dense: Bound
    routed: Bound
    npu: CountingNpu
    tokens: int
    slots: int
    experts: int
    channels: int

    def check(self, ids: np.ndarray, seed: int) -> None:
        draw = np.random.default_rng(seed)
        rows = draw.standard_normal((self.tokens, self.channels)).astype(np.float32)
        weights = draw.random((self.tokens, self.slots)).astype(np.float32)
        whole = self.dense.run(rows, ids, weights)
        assert np.abs(whole).max() > 0
        error = np.abs(self.routed.run(rows, ids, weights) - whole).max()
        assert error <= 1e-5 * np.abs(whole).max()


def mixture_part(path: Path, tokens: int) -> Model:
    """Return the first layer's mixture, cut from a static graph."""
    model = split(read_ir(path), tokens, 8)
    lower_graph(model, Options(precision="f32"))
    parts = cut_parts(model, routed_experts(InterpreterDevice(), 0, 8).groups(model))
    return next(part.model for part in parts if part.tag == TAG)


def bound(device: Device, loaded: LoadedModel, names: Mapping[str, str], folder: Path) -> Bound:
    own = [info for info in (*loaded.inputs, *loaded.outputs) if info.name in names.values()]
    arena, program = Arena(device, own), loaded.create_program()
    arena.bind(program)
    WeightsBank(device, folder).bind(program, loaded.inputs)
    return Bound(program, arena, names)


def make_case(path: Path, device: Device, tokens: int, chunk: int, pool: int = 8) -> Case:
    model = mixture_part(path, tokens)
    host, routing = InterpreterDevice(), routed_experts(device, chunk, pool).device
    loaded = routing.load(routing.compile(model.clone(), CONFIG))
    ports = loaded.inputs[:3]
    names = dict(zip(("rows", "ids", "weights"), (info.name for info in ports), strict=True))
    names["output"] = loaded.outputs[0].name
    dense = host.load(host.compile(model, CONFIG))
    return Case(
        dense=bound(host, dense, names, path.parent),
        routed=bound(device, loaded, names, path.parent),
        npu=device if isinstance(device, CountingNpu) else CountingNpu(),
        tokens=tokens,
        slots=ports[1].shape[1],
        experts=16 if "qwen3" in path.parent.name else 4,
        channels=ports[0].shape[-1],
    )


@pytest.fixture(scope="module", params=FAMILIES)
def on_npu(request: pytest.FixtureRequest, exported: Callable[[str], Path]) -> Case:
    return make_case(exported(request.param), CountingNpu(), TOKENS, CHUNK)


@pytest.fixture(scope="module", params=["mixtral_int8", "qwen3_moe_int4"])
def on_host(request: pytest.FixtureRequest, exported: Callable[[str], Path]) -> Case:
    return make_case(exported(request.param), InterpreterDevice(), TOKENS, CHUNK)


def chosen(data: st.DataObject, case: Case) -> np.ndarray:
    """Draw experts for each token, from a few or from all."""
    few = data.draw(st.integers(case.slots, case.experts), "experts in use")
    one = st.permutations(range(few)).map(lambda experts: experts[: case.slots])
    return np.array(data.draw(st.lists(one, min_size=case.tokens, max_size=case.tokens)))


@pytest.mark.matrix
@settings(max_examples=8, deadline=None)
@given(st.data(), st.integers(0, 99))
def test_any_choice_returns_the_results_of_the_dense_graph_on_the_npu(on_npu, data, seed):
    on_npu.check(chosen(data, on_npu), seed)


@pytest.mark.matrix
@settings(max_examples=8, deadline=None)
@given(st.data(), st.integers(0, 99))
def test_any_choice_returns_the_results_of_the_dense_graph_on_the_host(on_host, data, seed):
    on_host.check(chosen(data, on_host), seed)


@pytest.mark.matrix
def test_tokens_of_one_expert_run_in_chunks(on_npu):
    ids = np.tile(np.arange(on_npu.experts)[-on_npu.slots :], (TOKENS, 1))
    before = on_npu.npu.runs["expert"]
    on_npu.check(ids, 1)
    assert on_npu.npu.runs["expert"] - before == on_npu.slots * -(-TOKENS // CHUNK)


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["mixtral_int8", "qwen3_moe_int4"])
def test_experts_of_one_mixture_share_a_program(exported, name):
    npu = CountingNpu()
    make_case(exported(name), npu, TOKENS, CHUNK)
    assert npu.loaded["expert"] == 1


@pytest.mark.matrix
@pytest.mark.parametrize("pool", [0, 1, 3, 16])
def test_the_pool_size_changes_only_the_number_of_programs(exported, pool):
    npu = CountingNpu()
    case = make_case(exported("qwen3_moe_int4"), npu, 1, 0, pool)
    draw = np.random.default_rng(pool)
    for seed in range(12):
        case.check(draw.permutation(case.experts)[None, : case.slots], seed)
    assert npu.runs["expert"] == 12 * case.slots
    assert npu.made["expert"] == min(max(1, pool), case.experts)


def test_the_least_recently_used_program_is_rebound(exported):
    npu = CountingNpu()
    case = make_case(exported("qwen3_moe_int4"), npu, 1, 0, pool=7)
    bound: list[int] = []
    for last in (5, 6, 7, 6, 7, 5):  # in addition to experts 0 to 4
        before = npu.bound["expert"]
        case.check(np.array([[0, 1, 2, 3, 4, last]]), last)
        bound.append(npu.bound["expert"] - before)
    weights = bound[1]
    assert bound == [6 * weights, weights, weights, 0, 0, weights]


def test_a_rebound_weight_is_read_at_its_new_location(exported):
    path = exported("qwen3_moe_int4")
    npu = CountingNpu()
    case = make_case(path, npu, 1, 0)
    ids = np.arange(case.experts)[None, -case.slots :]
    case.check(ids, 1)
    routing = routed_experts(npu, 0, 8).device
    inputs = routing.load(routing.compile(mixture_part(path, 1), CONFIG)).inputs
    bank = WeightsBank(npu, path.parent)
    for info in inputs[3:]:
        memory = npu.allocate(1 << 16)
        content = bank.read(info)
        memory.data[: content.size] = content
        case.routed.program.bind(info.name, memory, 0)
    case.check(ids, 2)
    memory.data[...] = 0
    with pytest.raises(AssertionError):  # the last weight belongs to the last expert
        case.check(ids, 2)


def test_the_error_of_a_binding_names_the_tensor(exported):
    path = exported("qwen3_moe_int4")
    routing = HostRoutedDevice(InterpreterDevice(), 0, 8)
    loaded = routing.load(routing.compile(mixture_part(path, 1), CONFIG))
    program = loaded.create_program()
    with pytest.raises(DeviceError, match="not bound: link_"):
        program.run()
    with pytest.raises(DeviceError, match="no input or output 'nothing'"):
        program.bind("nothing", routing.allocate(8), 0)
    with pytest.raises(DeviceError, match="has 8 from its offset on"):
        program.bind(loaded.inputs[0].name, routing.allocate(8), 0)


def test_a_program_of_another_mixture_is_rejected(exported):
    """The mixtures have weights of the same names, and different row shapes."""
    routing = HostRoutedDevice(InterpreterDevice(), 0, 8)
    small, large = (
        read_container(routing.compile(mixture_part(exported("qwen3_moe_int4"), tokens), CONFIG))
        for tokens in (1, 3)
    )
    mixed = replace(small, programs=large.programs)
    with pytest.raises(DeviceError, match="has the program of another expert; compile it again"):
        routing.load(write_container(mixed))


def test_a_model_of_two_mixtures_is_rejected(exported):
    model = split(read_ir(exported("qwen3_moe_int4")), 1, 8)
    lower_graph(model, Options(precision="f32"))
    with pytest.raises(ModelError, match="the model has 2 mixtures of experts, not one"):
        HostRoutedDevice(InterpreterDevice(), 0, 8).compile(model, CONFIG)
