"""Almost equal layers: the program computes the complete model, whatever layers are folded.

A layer's steps are drawn and repeated; then some layers read other values than the others, share
weights, or are read at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model, foldings
from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.pipeline import Options
from compiler_layer.reference.interpreter import Interpreter
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.loader.hpi import HostParsedInference
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace, MemoryKind

PLATFORM = PLATFORMS["4000"]
WIDTH, ROWS = 16, 2

Place = tuple[int, int]
"""Layer, and a step of it; step 0 is the layer's input."""


@dataclass(frozen=True)
class Step:
    """Step of a layer: ``matmul`` with its weight, ``tanh``, or ``add``, of earlier steps."""

    kind: str
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """Layers of equal steps, exceptions in their reads, and values added at the end."""

    layers: int
    steps: tuple[Step, ...]
    reads: dict[Place, Place]
    weights: dict[Place, int]
    ends: tuple[Place, ...]


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    layers = draw(st.integers(3, 7))
    steps: list[Step] = []
    for number in range(draw(st.integers(4, 7))):
        earlier = st.integers(max(0, number - 2), number)
        kind = draw(st.sampled_from(["matmul", "matmul", "tanh", "add"]))
        steps.append(Step(kind, (draw(earlier), draw(earlier))))
    count = len(steps)
    place = st.tuples(st.integers(0, layers - 1), st.integers(1, count))
    reads: dict[Place, Place] = {}
    for layer, step in draw(st.lists(place, max_size=3)):
        # The source is any value of an earlier layer; all later layers may read it as well.
        of = (draw(st.integers(0, max(0, layer - 1))), draw(st.integers(0, count)))
        for later in range(layer, layers if draw(st.booleans()) else layer + 1):
            if of[0] < later:
                reads[later, step] = of
    shared = draw(st.lists(place, max_size=3))
    weights = {(layer, step): draw(st.integers(0, layer)) for layer, step in shared}
    return Recipe(layers, tuple(steps), reads, weights, tuple(draw(st.lists(place, max_size=2))))


def build(recipe: Recipe) -> Model:
    """Build the model of a recipe; x [ROWS, WIDTH]."""
    model, (x,) = Model.build([("x", tensor("f32", (ROWS, WIDTH)))])
    g, random = GraphBuilder(model), np.random.default_rng(3)
    matrices: dict[Place, SSAValue] = {}
    for layer in range(recipe.layers):
        for step in range(1, len(recipe.steps) + 1):
            values = random.standard_normal((WIDTH, WIDTH)) * 0.3
            matrices[layer, step] = g.constant(values.astype(np.float32))
    made: dict[Place, SSAValue] = {}
    for layer in range(recipe.layers):
        made[layer, 0] = x if layer == 0 else made[layer - 1, len(recipe.steps) + 1]
        for number, step in enumerate(recipe.steps, 1):
            first, second = ((layer, read) for read in step.reads)
            a = made[recipe.reads.get((layer, number), first)]
            if step.kind == "matmul":
                owner = recipe.weights.get((layer, number), layer)
                made[layer, number] = g.matmul(a, matrices[owner, number], True)
            elif step.kind == "tanh":
                made[layer, number] = g.op(activation.Tanh, a)
            else:
                made[layer, number] = g.op(elementwise.Add, a, made[second])
        last = g.op(activation.Tanh, made[layer, len(recipe.steps)])
        made[layer, len(recipe.steps) + 1] = g.op(elementwise.Add, made[layer, 0], last)
    y = made[recipe.layers - 1, len(recipe.steps) + 1]
    for place in recipe.ends:
        y = g.op(elementwise.Add, y, made[place])
    model.set_outputs([("y", y)])
    return model


def run(blob: bytes, x: np.ndarray) -> np.ndarray:
    """Run a blob of one input and one output of the same shape."""
    space = AddressSpace()
    inference = HostParsedInference(blob, PLATFORM)
    inference.load(space)
    given_input, output = (space.allocate(x.nbytes, MemoryKind.DMA) for _ in range(2))
    given_input.write(0, x.tobytes())
    inference.apply_input_output([given_input.address], [output.address])
    Device(PLATFORM).run_inference(space, inference.address)
    return output.data.view(x.dtype).reshape(x.shape)


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(recipe=recipes())
def test_the_program_computes_all_layers_whatever_is_folded(recipe: Recipe) -> None:
    x = np.random.default_rng(4).standard_normal((ROWS, WIDTH)).astype(np.float32)
    expected = Interpreter(build(recipe)).run({"x": x})["y"]
    actual = run(compile_model(build(recipe), Options("f32")), x)
    assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("layers", [4, 7])
def test_regular_layers_are_folded(layers: int) -> None:
    steps = (Step("matmul", (0, 0)), Step("tanh", (1, 1)), Step("matmul", (2, 2)))
    assert next(foldings(build(Recipe(layers, steps, {}, {}, ()))), None) is not None
