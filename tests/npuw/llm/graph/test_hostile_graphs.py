"""Hostile graphs: searches for patterns end, and errors state what is not supported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.npuw.splitting import split
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.model import Model
from npuw_layer.errors import ModelError


@pytest.fixture
def graph(demo: Path) -> tuple[Model, GraphBuilder]:
    """Return the demo model, and a builder to append unused ops."""
    model = read_folder(demo)
    return model, GraphBuilder(model, model.terminator)


def look_up(g: GraphBuilder, start: SSAValue) -> None:
    """Slice the end of a table, as MPT does with its biases."""
    table = g.constant(np.zeros((1, 4, 64), np.float32))
    g.op(Slice, table, g.reshape(start, 1), g.ints(1 << 40), g.ints(1), [g.ints(2)])


def test_a_value_reached_by_many_paths_is_visited_once(
    graph: tuple[Model, GraphBuilder],
) -> None:
    """The number of paths is 2 to the power of 200."""
    model, g = graph
    ids = next(port.value for port in model.inputs if port.name == "input_ids")
    count = g.dim(ids, 1)
    for _ in range(200):
        count = g.op(elementwise.Add, count, count)
    look_up(g, count)
    assert len(split(model, 1, 31).outputs) == 1


def test_too_deeply_nested_ops_are_rejected(graph: tuple[Model, GraphBuilder]) -> None:
    model, g = graph
    ids = next(port.value for port in model.inputs if port.name == "input_ids")
    count = g.dim(ids, 1)
    for _ in range(3000):
        count = g.op(elementwise.Add, count, g.ints(1))
    look_up(g, count)
    with pytest.raises(ModelError, match="nested too deeply"):
        split(model, 1, 31)
