"""NPUW_ACC_CHECK: comparison of a device's results with a reference device's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from compiler_layer.elements import convert_values, from_bytes
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.protocols import Array, Device, LoadedModel, Program, TensorInfo
from npuw_layer.tensors.names import MASK, is_transposed
from npuw_layer.tensors.token_inputs import new_tokens_of

_LEAST_SPAN = 1e-3
"""Least range in the division: it bounds the relative error of values near zero."""


def nrmse(found: Array, expected: Array) -> float:
    """Return the root mean square error, relative to the range of expected values and 0.

    The error is infinite where only one value is finite, or both are different non-finite values.
    NPUW also includes the found values in the range, so that one huge wrong value hides
    itself, and accepts NaN, which exceeds no threshold.

    Args:
        found: floats of any shape.
        expected: of the same shape.

    Source: NPUW's accuracy comparator (docs/reference/npuw.md#accuracy-check).
    """
    numbers = np.isfinite(expected)
    strange = ~numbers
    if not np.array_equal(found[strange], expected[strange], equal_nan=True):
        return math.inf
    values, wanted = found[numbers].astype(np.float64), expected[numbers].astype(np.float64)
    if not np.isfinite(values).all():
        return math.inf
    if not wanted.size:
        return 0.0
    error = math.sqrt(float(np.mean((values - wanted) ** 2)))
    span = max(0.0, float(wanted.max())) - min(0.0, float(wanted.min()))
    return error / max(span, _LEAST_SPAN)


@dataclass(slots=True)
class Findings:
    """Errors of a submodel, over all runs of all its programs."""

    runs: int = 0
    worst: dict[str, float] = field(default_factory=dict[str, float])
    """The largest NRMSE of each output."""

    def add(self, errors: Mapping[str, float]) -> None:
        """Record one more run."""
        self.runs += 1
        for name, error in errors.items():
            self.worst[name] = max(error, self.worst.get(name, 0.0))

    def __str__(self) -> str:
        if not self.worst:
            return "no run checked"
        name = max(self.worst, key=self.worst.__getitem__)
        return f"{self.runs} runs checked, largest NRMSE {self.worst[name]:.2e} ({name})"


class Reference:
    """A submodel on the reference device, in its own memory.

    Args:
        device: the reference device.
        loaded: the submodel, loaded there.
        program: a program of the submodel, its weights bound.

    Raises:
        DeviceError: no memory is left.
    """

    def __init__(self, device: Device, loaded: LoadedModel, program: Program) -> None:
        self._program = program
        self._inputs = tensors(loaded.inputs)
        self._outputs = tensors(loaded.outputs)
        self._bytes: dict[str, Array] = {}
        for info in {**self._inputs, **self._outputs}.values():
            memory = device.allocate(nbytes(info))
            program.bind(info.name, memory, 0)
            self._bytes[info.name] = memory.data[: nbytes(info)]

    def run(self, inputs: Mapping[str, Array]) -> None:
        """Run on copies of inputs, given as bytes by name: the device may overwrite its own."""
        for name in self._inputs:
            self._bytes[name][:] = inputs[name]
        self._program.run()

    def compare(self, outputs: Mapping[str, Array]) -> Mapping[str, float]:
        """Return the NRMSE of each output, given as bytes by name, including states.

        In row-wise outputs (new rows of states, hidden states, logits) only real tokens count:
        results of padding are undefined, and unused.
        """
        real = self._real_tokens()
        errors: dict[str, float] = {}
        for name, info in self._outputs.items():
            found, expected = _numbers(info, outputs[name]), _numbers(info, self._bytes[name])
            if is_transposed(name):
                found, expected = np.moveaxis(found, -1, 1), np.moveaxis(expected, -1, 1)
            if real is not None and found.shape[:2] == real.shape:
                found, expected = found[real], expected[real]
            errors[name] = nrmse(found, expected)
        return errors

    def _real_tokens(self) -> Array | None:
        """Return a mask of the new tokens that are not padding, [sequences, tokens], or None.

        None: the submodel has no token input, or no attention mask.
        """
        width = new_tokens_of({name: info.shape for name, info in self._inputs.items()})
        if width is None or MASK not in self._inputs:
            return None
        mask = _numbers(self._inputs[MASK], self._bytes[MASK])
        return mask[:, -width:] != 0

    def give(self, outputs: Mapping[str, Array]) -> None:
        """Copy the reference's results over those of the device."""
        for name in self._outputs:
            outputs[name][:] = self._bytes[name]


def tensors(infos: Sequence[TensorInfo]) -> Mapping[str, TensorInfo]:
    """Return all tensors but weights, by name."""
    return {info.name: info for info in infos if not info.name.startswith(WEIGHT_PREFIX)}


def _numbers(info: TensorInfo, raw: Array) -> Array:
    values = from_bytes(raw.tobytes(), info.element, math.prod(info.shape))
    return convert_values(values, info.element, "f32").reshape(info.shape)
