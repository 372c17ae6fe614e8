"""Recurrent networks in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import recurrent as ov
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.LSTMSequence)
def lstm_sequence(
    op: ov.LSTMSequence, x: Array, hidden: Array, cell: Array, lengths: Array, *learnt: Array
) -> tuple[Array, Array, Array]:
    """Run an LSTM over each sequence, once for each direction."""
    weights, recurrence, biases = learnt
    batch, steps, _ = x.shape
    size, many = hidden.shape[2], op.directions
    outputs = np.zeros((batch, many, steps, size), wide(x).dtype)
    last_hidden, last_cell = wide(hidden).copy(), wide(cell).copy()
    for d in range(many):
        # Inputs do not depend on earlier steps: one matmul covers all steps.
        given = wide(x) @ wide(weights[d]).T + wide(biases[d])
        back = op.direction.data == "reverse" or d == 1
        for b in range(batch):
            order = range(min(int(lengths[b]), steps))
            h, c = last_hidden[b, d], last_cell[b, d]
            for step in reversed(order) if back else order:
                h, c = _cell(given[b, step] + wide(recurrence[d]) @ h, c)
                outputs[b, d, step] = h
            last_hidden[b, d], last_cell[b, d] = h, c
    return outputs.astype(x.dtype), last_hidden.astype(x.dtype), last_cell.astype(x.dtype)


def _cell(gates: Array, before: Array) -> tuple[Array, Array]:
    """Compute one step; return the new output and the new cell state."""
    forget, taken, candidate, shown = np.split(gates, ov.GATES)
    cell = _sigmoid(forget) * before + _sigmoid(taken) * np.tanh(candidate)
    return _sigmoid(shown) * np.tanh(cell), cell


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
