"""Block cache, compiled: attention reads each block in place, and blocks are never joined."""

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
    """Return the bytes that cross DDR in a run."""
    return sum(layer.ddr_bytes for layer in explain(compile_model(graph, Options())).layers)


def past_bytes(model: Model) -> int:
    """Return the size of all past K and V in 8 bits."""
    reads = [v.read for v in model.variables() if v.read is not None]
    shapes = [read.output.type.get_shape() for read in reads]
    return sum(PAST * heads * width for _, heads, _, width in shapes)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_never_joined_in_memory(model: Model, kind: str) -> None:
    """Joining blocks would move the past twice more: out of its blocks, and into one buffer."""
    layout = KINDS[kind]
    room = None if layout.room is None else BLOCK
    blocks = replace(layout, room=room, block=BLOCK)
    whole, apart = (moved(split(model, 1, PAST, layout=each)) for each in (layout, blocks))
    assert abs(apart - whole) < 0.05 * past_bytes(model)


def test_blocks_of_a_batch_are_never_joined_in_memory(model: Model) -> None:
    whole, apart = (
        moved(split(model, 1, PAST, slots=4, layout=KVLayout(block=block)))
        for block in (None, BLOCK)
    )
    assert abs(apart - whole) < 0.05 * past_bytes(model)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_layers_with_blocks_are_folded(model: Model, kind: str) -> None:
    """One compiled repetition stands for all layers; its blocks have the names of all layers."""
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


def test_blocks_are_never_joined_in_a_chunked_prefill(model: Model) -> None:
    whole, apart = (
        moved(split(model, BLOCK, 8 * BLOCK, layout=KVLayout(block=block)))
        for block in (None, BLOCK)
    )
    assert abs(apart - whole) < 0.05 * past_bytes(model)
