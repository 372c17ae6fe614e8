"""Static models compute nothing from padded lengths; unsupported arithmetic is rejected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.npuw.llm.graph.lengths.small_decoder import (
    Bias,
    Places,
    decoder,
    run_dynamic,
    run_static,
)
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import elementwise, logic
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.check_lengths import CheckLengths
from npuw_layer.llm.graph.pipeline import run_passes, stage_passes
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options

PAST, TOKENS = 24, 6
_TABLE = np.random.default_rng(1).normal(size=128).astype(np.float32)


def check_lengths(model: Model) -> None:
    """Check the generate model with room for PAST and TOKENS."""
    stage = Stage(StageKind.GENERATE, TOKENS, PAST)
    passes = stage_passes(model, stage, parse_options({}), check=True)
    run_passes(model.clone(), [each for each in passes if isinstance(each, CheckLengths)])


def number(p: Places, value: SSAValue) -> SSAValue:
    return p.g.times(p.g.convert(value, "f32"), 0.3)


def agrees(bias: Bias, stored: int, new: int) -> bool:
    """Compare padded static models with the stateful model."""
    model = decoder(bias)
    ids = [int(each) for each in np.random.default_rng(2).integers(0, 16, stored + new)]
    expected, caches = run_dynamic(model, ids, stored)
    found = run_static(model, ids, stored, caches, (PAST, TOKENS))
    return bool(np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max())


def sliding_window(p: Places) -> SSAValue:
    near = p.g.op(elementwise.Subtract, p.queries, p.scalar(4))
    return number(p, p.g.op(logic.Greater, p.keys, near))


def chunks(p: Places) -> SSAValue:
    """Llama 4: tokens attend within their chunk."""
    halves = (p.g.op(elementwise.Divide, each, p.scalar(5)) for each in (p.keys, p.queries))
    return number(p, p.g.op(logic.Equal, *halves))


def temperature(p: Places) -> SSAValue:
    """Llama 4: distant queries are scaled."""
    scaled = p.g.op(elementwise.Divide, p.g.convert(p.queries, "f32"), p.g.number(9.0, p.queries))
    return p.g.times(p.g.op(elementwise.Floor, scaled), 0.3)


def window_table(p: Places) -> SSAValue:
    """GPT-Neo: a table of visible keys for each query, cut at the rows of new tokens."""
    g, distance = p.g, np.arange(64)[:, None] - np.arange(64)
    table = g.constant(((distance >= 0) & (distance < 5))[None, None])
    past, total = (g.reshape(each, 1) for each in (p.past, p.total))
    start, stop = g.concat([past, g.ints(0)], 0), g.concat([total, total], 0)
    cut = g.op(Slice, table, start, stop, g.ints(1, 1), [g.ints(2, 3)])
    return p.g.times(g.convert(cut, "f32"), 0.3)


@pytest.mark.matrix
@pytest.mark.parametrize("bias", [sliding_window, chunks, temperature, window_table])
@pytest.mark.parametrize(("stored", "new"), [(0, 6), (1, 1), (7, 4), (22, 2)])
def test_a_supported_pattern_counts_tokens_not_rows(bias: Bias, stored: int, new: int) -> None:
    check_lengths(decoder(bias))
    assert agrees(bias, stored, new)


def by_length(p: Places) -> SSAValue:
    """Scores that grow with the length of the context."""
    return number(p, p.total)


def key_numbers(p: Places) -> SSAValue:
    """Biases that grow with the row of a key."""
    return number(p, p.keys)


def whole_blocks(p: Places) -> SSAValue:
    """A flag: all blocks of 8 tokens are full."""
    full = p.g.op(elementwise.Mod, p.total, p.scalar(8))
    return number(p, p.g.op(logic.Equal, full, p.scalar(0)))


def last_keys(p: Places) -> SSAValue:
    """A flag: the key is one of the last four rows."""
    first = p.g.op(elementwise.Subtract, p.total, p.scalar(4))
    return number(p, p.g.op(logic.GreaterEqual, p.keys, first))


@pytest.mark.parametrize("bias", [by_length, key_numbers, whole_blocks, last_keys])
def test_the_error_for_a_value_of_a_padded_length_names_the_op(bias: Bias) -> None:
    with pytest.raises(ModelError, match=r"ov\.Add: it reads a value computed from the length"):
        check_lengths(decoder(bias))


COMPARISONS: tuple[type[OvOp], ...] = (logic.Equal, logic.Less, logic.GreaterEqual)
ARITHMETIC: tuple[type[OvOp], ...] = (
    elementwise.Add,
    elementwise.Subtract,
    elementwise.Minimum,
    elementwise.Maximum,
)


@st.composite
def biases(draw: st.DrawFn) -> Bias:
    """Arithmetic on lengths and rows that compares, gathers, slices and adds."""
    steps = draw(st.lists(st.tuples(st.integers(0, 5), *[st.integers(0, 9)] * 3), max_size=5))
    last = draw(st.integers(0, 3))

    def bias(p: Places) -> SSAValue:
        g = p.g
        values = [p.keys, p.queries, p.past, p.new, p.total, p.scalar(1), p.scalar(5), p.scalar(20)]
        for kind, a, b, c in steps:
            one, other = values[-1 - a % len(values)], values[b % len(values)]
            if kind < 3:
                values.append(g.op(ARITHMETIC[c % len(ARITHMETIC)], one, other))
            elif kind == 3:
                divided = (elementwise.Divide, elementwise.Mod)[b % 2]
                values.append(g.op(divided, one, p.scalar(c + 1)))
            elif kind == 4:
                found = g.op(COMPARISONS[c % len(COMPARISONS)], one, other)
                values.append(g.convert(found, "i64"))
        value = values[-1]
        if last == 0:
            return number(p, value)
        if last == 1:
            index = g.op(elementwise.Minimum, value, p.scalar(127))
            index = g.op(elementwise.Maximum, index, p.scalar(0))
            return g.gather(g.constant(_TABLE), index, 0)
        # As many entries of a table as there are keys, from a length on.
        begin = [p.past, p.new, g.op(elementwise.Subtract, p.scalar(128), p.total)][last - 1]
        start = g.reshape(begin, 1)
        stop = g.op(elementwise.Add, start, g.reshape(p.total, 1))
        cut = g.op(Slice, g.constant(_TABLE), start, stop, g.ints(1), [g.ints(0)])
        return g.op(elementwise.Add, g.reshape(cut, 1, 1, 1, -1), number(p, value))

    return bias


@settings(max_examples=18, deadline=None)
@given(biases(), st.integers(0, 22), st.integers(1, 6))
def test_a_random_graph_is_exact_or_rejected(bias: Bias, stored: int, new: int) -> None:
    try:
        check_lengths(decoder(bias))
    except ModelError:
        event("rejected")
        return
    event("exact")
    assert agrees(bias, stored, new)
