"""A decoder of one layer whose attention scores have a bias that a test computes from lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.npuw.splitting import split
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, shape
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.reduce import Softmax
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.llm.graph.causal_mask import causal_mask

VOCABULARY, HEADS, WIDTH = 16, 2, 4


@dataclass(frozen=True)
class Places:
    """Values that locate tokens: i64, broadcast to [1, 1, new, total]."""

    g: GraphBuilder
    past: SSAValue
    new: SSAValue
    total: SSAValue
    keys: SSAValue
    """0, 1 … total - 1, [1, 1, 1, total]."""
    queries: SSAValue
    """past … total - 1, [1, 1, new, 1]."""

    def scalar(self, value: int) -> SSAValue:
        return self.g.constant(np.full((1, 1, 1, 1), value, np.int64))


Bias = Callable[[Places], SSAValue]


def decoder(bias: Bias) -> Model:
    """Write the stateful graph; ``bias`` returns an f32 that broadcasts to the scores."""
    dynamic = tensor("i64", (-1, -1))
    names = ["input_ids", "attention_mask", "position_ids"]
    model, (ids, mask, positions, beams) = Model.build(
        [*((name, dynamic) for name in names), ("beam_idx", tensor("i32", (-1,)))]
    )
    rng = np.random.default_rng(0)
    g = GraphBuilder(model)

    def weight(*dims: int) -> SSAValue:
        return g.constant(rng.normal(size=dims).astype(np.float32))

    states = g.gather(weight(VOCABULARY, HEADS * WIDTH), ids, 0)
    states = g.op(elementwise.Add, states, g.gather(weight(64, HEADS * WIDTH), positions, 0))
    query = g.transpose(g.reshape(states, 0, 0, HEADS, WIDTH), 0, 2, 1, 3)
    empty = g.concat([g.dim(ids, 0), g.ints(HEADS), g.ints(0), g.ints(WIDTH)], 0)
    start = g.op(shape.Broadcast, g.constant(np.float32(0)), empty, mode=StringAttr("numpy"))
    caches: list[SSAValue] = []
    read: SSAValue | None = None
    for name in ("past_key_values.0.key", "past_key_values.0.value"):
        op = ReadValue(
            operands=[[start]],
            properties={"variable_id": StringAttr(name)},
            result_types=[tensor("f32", (-1, HEADS, -1, WIDTH))],
        )
        read = g.gather(g.add(op).output, beams, 0)
        cache = g.concat([read, query], 2)
        g.op(Assign, cache, variable_id=StringAttr(name))
        caches.append(cache)
    assert read is not None
    scores = g.matmul(query, caches[0], transpose_b=True)
    scores = g.op(elementwise.Add, scores, causal_mask(g, ids, mask))
    scores = g.op(elementwise.Add, scores, bias(_places(g, read, ids)))
    seen = g.op(Softmax, scores, axis=int_attr(-1))
    mixed = g.transpose(g.matmul(seen, caches[1], transpose_b=False), 0, 2, 1, 3)
    logits = g.matmul(g.reshape(mixed, 0, 0, HEADS * WIDTH), weight(VOCABULARY, 8), True)
    model.set_outputs([("logits", logits)])
    return model


def _places(g: GraphBuilder, read: SSAValue, ids: SSAValue) -> Places:
    past, new = (
        g.op(shape.Squeeze, g.dim(v, axis), [g.ints(0)]) for v, axis in ((read, 2), (ids, 1))
    )
    total = g.op(elementwise.Add, past, new)
    kind, one = StringAttr("i64"), g.scalar(1)
    keys = g.op(shape.Range, g.scalar(0), total, one, output_type=kind)
    queries = g.op(shape.Range, past, total, one, output_type=kind)
    whole = [g.reshape(each, 1, 1, 1, 1) for each in (past, new, total)]
    return Places(g, *whole, g.reshape(keys, 1, 1, 1, -1), g.reshape(queries, 1, 1, -1, 1))


def run_dynamic(
    model: Model, ids: list[int], stored: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Read ``stored`` tokens, then the others; return the others' logits and the stored rows."""
    interpreter = Interpreter(model)
    caches: dict[str, np.ndarray] = {}
    logits = np.zeros((1, 0, VOCABULARY), np.float32)
    for begin, end in ((0, stored), (stored, len(ids))):
        if begin < end:
            caches = dict(interpreter.variables)
            logits = interpreter.run(
                {
                    "input_ids": np.array([ids[begin:end]]),
                    "attention_mask": np.ones((1, end), np.int64),
                    "position_ids": np.arange(begin, end)[None],
                    "beam_idx": np.zeros(1, np.int32),
                }
            )["logits"]
    return logits[0], caches


def run_static(
    model: Model, ids: list[int], stored: int, caches: dict[str, np.ndarray], room: tuple[int, int]
) -> np.ndarray:
    """Read the tokens after ``stored`` ones in a split with room for more of both."""
    past, tokens = room
    new = len(ids) - stored
    static = split(model, tokens, past)
    interpreter = Interpreter(static)
    for name, rows in caches.items():
        padded = np.full((1, past, HEADS, WIDTH), 7, np.float32)
        padded[:, :stored] = rows.transpose(0, 2, 1, 3)
        interpreter.variables[name] = padded
    mask = np.zeros((1, past + tokens), np.int64)
    mask[:, :stored] = mask[:, past : past + new] = 1
    given = {
        "input_ids": np.array([ids[stored:] + [0] * (tokens - new)]),
        "attention_mask": mask,
        "position_ids": np.array([[*range(stored, len(ids)), *[0] * (tokens - new)]]),
        "cache_position": np.minimum(stored + np.arange(tokens), len(ids) - 1)[None],
    }
    inputs = {port.name: given[port.name] for port in static.inputs}
    return interpreter.run(inputs)["logits"][0, :new]
