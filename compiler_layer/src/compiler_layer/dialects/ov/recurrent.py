"""Recurrent networks over sequences."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor

GATES = 4
"""Gates of an LSTM, in this order: forget, input, candidate, output."""


class LSTMSequence(OvOp):
    """Long short-term memory over [B, T, I], in one direction or both (opset5).

    ``lengths`` [B] are the valid steps of each sequence: the output after them is 0, and the last
    states are those of the last valid step. The direction "reverse" begins at that step.
    """

    x = operand_def(Tensor)
    hidden = operand_def(Tensor)
    cell = operand_def(Tensor)
    lengths = operand_def(Tensor)
    weights = operand_def(Tensor)
    recurrence = operand_def(Tensor)
    biases = operand_def(Tensor)
    hidden_size = prop_def(IntegerAttr)
    direction = prop_def(StringAttr)
    activations = prop_def(StringAttr)
    activations_alpha = prop_def(StringAttr)
    activations_beta = prop_def(StringAttr)
    clip = prop_def(StringAttr)
    outputs = result_def(Tensor)
    last_hidden = result_def(Tensor)
    last_cell = result_def(Tensor)

    @property
    def directions(self) -> int:
        """Number of directions in which the sequence is read."""
        return 2 if self.direction.data == "bidirectional" else 1

    def infer(self) -> list[Tensor]:
        """Infer [B, directions, T, H], and the last states, [B, directions, H]."""
        size, many = int_value(self.hidden_size), self.directions
        batch, steps, wide = self._shape(self.x, (-1, -1, -1))
        for state in (self.hidden, self.cell):
            batch = _either(batch, self._shape(state, (batch, many, size))[0])
        batch = _either(batch, self._shape(self.lengths, (batch,))[0])
        self._shape(self.weights, (many, GATES * size, wide))
        self._shape(self.recurrence, (many, GATES * size, size))
        self._shape(self.biases, (many, GATES * size))
        element = element_of(self.x)
        floats = (self.hidden, self.cell, self.weights, self.recurrence, self.biases)
        if any(element_of(each) != element for each in floats):
            raise ValueError(f"the operands are not all {element}")
        state = tensor(element, (batch, many, size))
        return [tensor(element, (batch, many, steps, size)), state, state]

    def _shape(self, value: SSAValue, wanted: Shape) -> Shape:
        """Return an operand's shape completed by the expected one; -1 is any dimension."""
        found = shape_of(value)
        pairs = list(zip(found, wanted, strict=False))
        if len(found) != len(wanted) or any(a != b and -1 not in (a, b) for a, b in pairs):
            raise ValueError(f"an operand is {list(found)}, not {list(wanted)}")
        return tuple(_either(b, a) for a, b in pairs)


def _either(known: int, other: int) -> int:
    return other if known < 0 else known
