"""A past in blocks, compiled: attention reads each where it is, and nothing is joined in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.npuw.splitting import split

from compiler_layer.compile import compile_model, foldings
from compiler_layer.explain import explain
from compiler_layer.model import Model
from compiler_layer.pipeline import Options
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.storage.read_model import read_model

PAST, BLOCK = 1151, 128
"""Eight blocks and a tail of 127 rows."""

KINDS = {
    "plain": KVLayout(),
    "8 bits": KVLayout(element="i8"),
    "transposed": KVLayout(room=1152),
}


@pytest.fixture(scope="module")
def model(llama_8m: Path) -> Model:
    return read_model(llama_8m)


def moved(graph: Model) -> int:
    """Bytes that cross DDR in a run."""
    return sum(layer.ddr_bytes for layer in explain(compile_model(graph, Options())).layers)


def past_bytes(model: Model) -> int:
    """All K and V of the past, in 8 bits."""
    reads = [v.read for v in model.variables() if v.read is not None]
    shapes = [read.output.type.get_shape() for read in reads]
    return sum(PAST * heads * width for _, heads, _, width in shapes)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_never_joined_in_memory(model: Model, kind: str) -> None:
    """A copy would move the past twice more: out of its blocks, and into one piece."""
    layout = KINDS[kind]
    room = None if layout.room is None else BLOCK
    blocks = replace(layout, room=room, block=BLOCK)
    whole, apart = (moved(split(model, 1, PAST, layout=each)) for each in (layout, blocks))
    assert abs(apart - whole) < 0.05 * past_bytes(model)


def test_nor_are_those_of_several_conversations(model: Model) -> None:
    whole, apart = (
        moved(split(model, 1, PAST, slots=4, layout=KVLayout(block=block)))
        for block in (None, BLOCK)
    )
    assert abs(apart - whole) < 0.05 * past_bytes(model)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_folded(model: Model, kind: str) -> None:
    """What is compiled once stands for blocks of all layers, whose names it knows."""
    layout = KINDS[kind]
    blocks = replace(layout, room=None if layout.room is None else BLOCK, block=BLOCK)
    smaller = next(iter(foldings(model)))
    assert len(smaller.variables()) < len(model.variables())
    found = [
        explain(compile_model(split(graph, 1, PAST, layout=blocks), Options(fold=fold), "llama"))
        for graph, fold in ((smaller, True), (model, False))
    ]
    costs = [[(c.transfers, c.products, c.ddr_bytes) for c in each.layers] for each in found]
    assert costs[0] == costs[1]


def test_nor_where_a_prompt_goes_on(model: Model) -> None:
    whole, apart = (
        moved(split(model, BLOCK, 8 * BLOCK, layout=KVLayout(block=block)))
        for block in (None, BLOCK)
    )
    assert abs(apart - whole) < 0.05 * past_bytes(model)
