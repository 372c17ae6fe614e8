"""Comparison of single ops with the real OpenVINO.

A small model is built with OpenVINO's API, saved as IR, and run by OpenVINO on the CPU and by our
reader and interpreter. OpenVINO runs our writer's output to the same bits. Shape inference with
unknown dimensions, and constant folding, are compared with OpenVINO, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset15 as op
import pytest
from hypothesis import reject, settings
from hypothesis import strategies as st

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.random_uniform import RandomUniform
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.frontends.openvino_ir.ops import kind_of
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.model import Model, context
from compiler_layer.passes.fold_constants import FoldConstants
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir

CORE = ov.Core()
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
HALF = 2e-3
"""Tolerance for f16: two units in the last place."""

settings.register_profile("oracle", max_examples=8, deadline=None, derandomize=True)
settings.load_profile("oracle")


class NoKernel(Exception):
    """OpenVINO's CPU plugin has no kernel for a valid op on this machine."""


def check_one(
    folder: Path,
    build: Callable[..., object],
    *inputs: np.ndarray,
    constants: Collection[int] = (),
    rtol: float = 1e-5,
    with_unknown: bool = True,
) -> Model:
    """Compare OpenVINO and our interpreter on one op.

    Args:
        folder: for files.
        build: builds the op from its inputs.
        inputs: parameters of the model, or constants.
        constants: indices of the inputs that are constants.
        rtol: tolerance, relative and absolute.
        with_unknown: whether shape inference is also compared with unknown dimensions.

    Returns:
        The op as our reader returns it.

    Raises:
        NoKernel: OpenVINO itself does not run the op.
    """
    model = _one_op(build, inputs, constants)
    feeds = {name: x for i, (name, x) in enumerate(_named(inputs)) if i not in constants}
    path, written = folder / "model.xml", folder / "written.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    ours = read_ir(path)
    ours.verify()
    write_ir(ours, written)
    try:
        expected, others = _run_both(model, CORE.read_model(written), feeds)
    except RuntimeError as error:
        if "could not create a primitive descriptor" in str(error):
            raise NoKernel from error
        raise
    actual = list(Interpreter(ours).run(feeds).values())
    for result, values in zip(actual, expected, strict=True):
        assert result.shape == values.shape
        assert result.dtype == values.dtype
        close = max(rtol, HALF) if values.dtype == np.float16 else rtol
        np.testing.assert_allclose(result, values, rtol=close, atol=close)
    for values, other in zip(expected, others, strict=True):
        np.testing.assert_array_equal(values, other)
    _check_folding(ours.clone(), feeds, actual)
    _check_inference(model, ours, [values.shape for values in expected], with_unknown)
    return ours


def _named(inputs: Sequence[np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    return zip("abcdefg", inputs, strict=False)


def _one_op(
    build: Callable[..., object], inputs: Sequence[np.ndarray], constants: Collection[int]
) -> ov.Model:
    nodes, parameters = [], []
    for i, (name, x) in enumerate(_named(inputs)):
        if i in constants:
            nodes.append(op.constant(x))
            continue
        nodes.append(op.parameter(list(x.shape), ov.Type(x.dtype), name=f"p{i}"))
        nodes[-1].output(0).set_names({name})
        parameters.append(nodes[-1])
    outputs = list(build(*nodes).outputs())
    for index, output in enumerate(outputs):
        output.set_names({f"y{index}"})
    return ov.Model([op.result(output) for output in outputs], parameters, "one_op")


def _run_both(
    model: ov.Model, written: ov.Model, feeds: Mapping[str, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Run two models as separate parts of one model: compiling takes the time, not running."""
    inputs = [feeds[port.any_name] for port in (*model.inputs, *written.inputs)]
    for port in (*written.inputs, *written.outputs):
        port.tensor.set_names(set())  # names are unique in a model
    results = model.get_results() + written.get_results()
    parameters = model.get_parameters() + written.get_parameters()
    compiled = CORE.compile_model(ov.Model(results, parameters, "both"), "CPU", F32)
    found = [np.array(v) for v in compiled(inputs).values()]  # ``compiled`` owns the memory
    return found[: len(model.outputs)], found[len(model.outputs) :]


def _check_folding(
    ours: Model, feeds: Mapping[str, np.ndarray], expected: Sequence[np.ndarray]
) -> None:
    """Check that the results are constants if all parameters are."""
    if _has_attention(ours) or any(isinstance(each, RandomUniform) for each in ours.body.ops):
        return  # never folded: no model has an attention of constants, and draws are repeated
    for port in ours.inputs:
        constant = Constant.inline(feeds[port.name])
        ours.body.insert_op_before(constant, ours.body.first_op)
        port.value.replace_all_uses_with(constant.output)
    FoldConstants().apply(context(), ours.module)
    for port, values in zip(ours.outputs, expected, strict=True):
        folded = constant_of(port.value)
        assert folded is not None
        loaded = folded.load()
        assert loaded.dtype == values.dtype
        np.testing.assert_array_equal(loaded, values)


def _check_inference(
    theirs: ov.Model, ours: Model, results: Sequence[tuple[int, ...]], with_unknown: bool
) -> None:
    """Check that, with any unknown dimensions, we infer all that OpenVINO infers, and correctly."""
    # Our query heads may be multiples of key heads: neither number follows from the other.
    grouped = _has_attention(ours)
    names = [port.name for port in ours.inputs]
    known = [shape_of(port.value) for port in ours.inputs]
    for shapes in _partly_known(known) if with_unknown else [known]:
        theirs.reshape({n: ov.PartialShape(list(s)) for n, s in zip(names, shapes, strict=True)})
        told = [output.partial_shape for output in theirs.outputs]
        unranked = any(shape.rank.is_dynamic for shape in told)
        try:
            inferred = _inferred(ours.clone(), dict(zip(names, shapes, strict=True)))
        except ValueError:
            assert unranked, f"refused with {shapes}"  # every tensor of ours has a rank
            continue
        for mine, true, their in zip(inferred, results, told, strict=True):
            assert len(mine) == len(true), f"with {shapes}"
            assert all(m in (-1, t) for m, t in zip(mine, true, strict=True)), f"with {shapes}"
            if not their.rank.is_dynamic and not grouped:
                wanted = [d.get_length() if d.is_static else -1 for d in their]
                fits = all(m == w or w == -1 for m, w in zip(mine, wanted, strict=True))
                assert fits, f"with {shapes}: {mine}, OpenVINO says {wanted}"


def _has_attention(ours: Model) -> bool:
    return any(isinstance(each, ScaledDotProductAttention) for each in ours.body.ops)


def _partly_known(shapes: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield all dimensions known, then each dimension unknown alone, then all unknown."""
    yield list(shapes)
    for i, shape in enumerate(shapes):
        for axis in range(len(shape)):
            partly = (*shape[:axis], -1, *shape[axis + 1 :])
            yield [partly if j == i else other for j, other in enumerate(shapes)]
    yield [(-1,) * len(shape) for shape in shapes]


def _inferred(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    model.set_input_shapes(shapes)
    for each in model.body.ops:
        if isinstance(each, OvOp):
            each.refresh_types()
    return [shape_of(port.value) for port in model.outputs]


class Draws:
    """Values for ops, drawn by hypothesis.

    Args:
        data: source of draws.
    """

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw

    def whole(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def flag(self) -> bool:
        return self._draw(st.booleans())

    def one_of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def shape(self, least: int = 1, most: int = 4, longest: int = 5) -> list[int]:
        """Draw a shape of ``least`` to ``most`` dimensions, none of them 0."""
        return self._draw(st.lists(st.integers(1, longest), min_size=least, max_size=most))

    def axis(self, rank: int) -> int:
        """Draw an axis, counted from either end."""
        return self.whole(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Draw different axes in any order, counted from either end."""
        axes = st.integers(-rank, rank - 1)
        return self._draw(st.lists(axes, min_size=least, unique_by=lambda a: a % rank))

    def order(self, rank: int) -> list[int]:
        return self._draw(st.permutations(range(rank)))

    def broadcast_to(self, shape: Sequence[int]) -> list[int]:
        """Draw a shape that broadcasts to another: ones, and omitted leading dimensions."""
        dims = [self.one_of(1, d) for d in shape]
        return dims[self.whole(0, len(dims)) :]

    def seed(self) -> np.random.RandomState:
        return np.random.RandomState(self.whole(0, 1 << 16))

    def floats(self, shape: Sequence[int], kind: str = "f4") -> np.ndarray:
        return np.asarray(self.seed().standard_normal(shape), kind)

    def integers(
        self, shape: Sequence[int], low: int = -9, high: int = 9, kind: str = "i8"
    ) -> np.ndarray:
        """Draw integers from ``low`` to ``high``, both inclusive."""
        return np.asarray(self.seed().randint(low, high + 1, shape), kind)

    def numbers(self, shape: Sequence[int]) -> np.ndarray:
        """Draw numbers of any type that most ops accept."""
        kind = self.one_of("f4", "f2", "i4", "i8")
        return self.floats(shape, kind) if kind[0] == "f" else self.integers(shape, kind=kind)

    def vector(self, values: Sequence[int]) -> np.ndarray:
        """Return a list of axes, dimensions or lengths as an operand."""
        return np.array(values, self.one_of("i4", "i8"))

    def number(self, value: int) -> np.ndarray:
        """Return an axis or a length as an operand: a scalar, or a vector of one."""
        return self.vector(value if self.flag() else [value])


def check_random(
    folder: Path, kind: str, data: st.DataObject, case: Callable[[Draws], tuple[Any, ...]]
) -> None:
    """Compare an op in a drawn case.

    Args:
        folder: for files.
        kind: type of layer; the case must contain one.
        data: source of draws.
        case: returns a function that builds the op, the op's inputs, and optionally the indices of
            inputs that OpenVINO's CPU plugin requires to be constants. Of the other inputs, any but
            the first may be constants.
    """
    draws = Draws(data)
    build, inputs, *needed = case(draws)
    constants = {*RULES[kind].constants, *(needed[0] if needed else ())}
    constants |= {i for i in range(1, len(inputs)) if i not in constants and draws.flag()}
    try:
        ours = check_one(folder, build, *inputs, constants=constants, rtol=5e-5)
    except NoKernel:
        reject()
    assert kind in [kind_of(each) for each in ours.body.ops if isinstance(each, OvOp)]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Return a function that compares one op, built from parameters: ``check(build, *inputs)``."""
    return partial(check_one, tmp_path_factory.mktemp("ops"))


@pytest.fixture(scope="module")
def check_drawn(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Return a function that compares a drawn case: ``check_drawn(kind, data, case)``."""
    return partial(check_random, tmp_path_factory.mktemp("ops"))
