"""The interpreter's memory, and the values that it shows."""

from __future__ import annotations

import tracemalloc

import numpy as np

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter

COUNT = 1 << 18
"""Elements of each value: 1 MiB."""


def chain(length: int) -> Model:
    """Build x + 1 + 1 …, with the first sum and the last one as outputs."""
    model, (x,) = Model.build([("x", tensor("f32", (-1,)))])
    g = GraphBuilder(model)
    one = g.constant(np.ones(1, np.float32))
    sums = [x]
    for _ in range(length):
        sums.append(g.op(Add, sums[-1], one))
    model.set_outputs([("first", sums[1]), ("last", sums[-1])])
    return model


def test_values_are_dropped_after_their_last_use_and_outputs_are_kept() -> None:
    interpreter = Interpreter(chain(32))
    tracemalloc.start()
    for _ in range(2):
        found = interpreter.run({"x": np.zeros(COUNT, np.float32)})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * found["last"].nbytes
    assert (found["first"][0], found["last"][0]) == (1, 32)


def test_an_observer_sees_each_value_in_the_order_of_the_ops() -> None:
    model, seen = chain(3), list[float]()
    Interpreter(model).run(
        {"x": np.zeros(1, np.float32)}, lambda _, array: seen.append(float(array[0]))
    )
    assert seen == [1, 1, 2, 3]  # the constant first
