"""Numpy interpreter: the executable semantics of the ``ov`` graph, including dynamic shapes.

Ops on bf16 and f8, which numpy lacks, are computed in f32 and rounded once.

NPUW on the CPU runs models with it, constant folding uses it, and tests compare every pass with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor
from compiler_layer.elements import NUMPY, RAW_FLOATS, convert_values
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.reference.meaning import MEANINGS, Array, Meaning, means

_BY_THEMSELVES = Convert | Dequantize
"""Ops that handle raw floats themselves."""

Observer = Callable[[SSAValue, Array], object]
"""Receiver of each value that an op computes, in the order of the ops."""


def _ignore(value: SSAValue, array: Array) -> None:
    del value, array


class Interpreter:
    """Interpreter of one model, with its variables' values.

    Args:
        model: model to run; it is not changed.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._constants: dict[Constant, Array] = {}
        self.variables: dict[str, Array] = {}
        """Values of variables that an inference has assigned, by id."""

    def reset(self) -> None:
        """Reset all variables to their initial values."""
        self.variables.clear()

    def run(self, inputs: Mapping[str, Array], observe: Observer = _ignore) -> dict[str, Array]:
        """Run one inference; an intermediate value is dropped after its last use.

        Args:
            inputs: an array for each parameter of the model, by name.
            observe: called with each value that an op computes.

        Returns:
            The results by name.

        Raises:
            CompilerUsageError: an input is missing, or has a wrong type or shape.
        """
        values: dict[SSAValue, Array] = {}
        for port in self._model.inputs:
            values[port.value] = _checked(port.name, port.value, inputs)
        assigned: dict[str, Array] = {}
        for op in self._model.body.ops:
            self._execute(op, values, assigned)
            for result in op.results:
                observe(result, values[result])
            for value in self._last_uses.get(op, ()):
                del values[value]
        self.variables.update(assigned)
        return {port.name: values[port.value] for port in self._model.outputs}

    @cached_property
    def _last_uses(self) -> dict[Operation, Sequence[SSAValue]]:
        """Values that each op is the last to read."""
        seen: set[SSAValue] = {*self._model.terminator.operands}
        last: dict[Operation, Sequence[SSAValue]] = {}
        for op in reversed([*self._model.body.ops]):
            last[op] = [*{*op.operands} - seen]
            seen.update(op.operands)
        return last

    def _execute(
        self, op: Operation, values: dict[SSAValue, Array], assigned: dict[str, Array]
    ) -> None:
        if isinstance(op, ReturnOp):
            return
        if isinstance(op, Constant):
            values[op.output] = self._constants.setdefault(op, op.load())
            return
        operands = [values[operand] for operand in op.operands]
        if isinstance(op, ReadValue):
            values[op.output] = self._read(op, operands)
        elif isinstance(op, Assign):
            values[op.output] = assigned[op.variable_id.data] = operands[0]
        else:
            for result, array in zip(op.results, evaluate(op, operands), strict=True):
                values[result] = array

    def _read(self, op: ReadValue, init: Sequence[Array]) -> Array:
        stored = self.variables.get(op.variable_id.data)
        if stored is not None:
            return stored
        if init:
            return init[0]
        shape = tuple(max(d, 0) for d in shape_of(op.output))
        return np.zeros(shape, NUMPY[element_of(op.output)])


def evaluate(op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Compute one op; constants, ReadValue and Assign are excluded.

    Raises:
        CompilerUsageError: the op has no function in the table.
    """
    meaning = MEANINGS.get(type(op))
    if meaning is None:
        raise CompilerUsageError(f"the interpreter does not implement {op.name}")
    with np.errstate(all="ignore"):
        if _computes_with_raw_floats(op):
            return _evaluate_wide(op, operands, meaning)
        result = meaning(op, *operands)
    return result if isinstance(result, tuple) else (result,)


def _computes_with_raw_floats(op: Operation) -> bool:
    """Return whether an op has raw floats that numpy would treat as integers."""
    values = (*op.operands, *op.results)
    own = not isinstance(op, OvOp) or isinstance(op, _BY_THEMSELVES)
    return not own and any(map(_is_raw, values))


def _evaluate_wide(op: Operation, operands: Sequence[Array], meaning: Meaning) -> tuple[Array, ...]:
    """Compute an op in f32 instead of raw bits, and round its results."""
    block = Block(arg_types=[_wide(value) for value in op.operands])
    twin = op.clone(dict(zip(op.operands, block.args, strict=True)))
    for result in twin.results:
        Rewriter.replace_value_with_new_type(result, _wide(result))
    wide = [
        convert_values(array, element_of(value), "f32") if _is_raw(value) else array
        for value, array in zip(op.operands, operands, strict=True)
    ]
    made = meaning(twin, *wide)
    arrays = made if isinstance(made, tuple) else (made,)
    return tuple(
        convert_values(array, "f32", element_of(result)) if _is_raw(result) else array
        for result, array in zip(op.results, arrays, strict=True)
    )


def _is_raw(value: SSAValue) -> bool:
    return element_of(value) in RAW_FLOATS


def _wide(value: SSAValue) -> Tensor:
    return tensor("f32" if _is_raw(value) else element_of(value), shape_of(value))


@means(npu.Kernel)
def kernel(op: npu.Kernel, *operands: Array) -> tuple[Array, ...]:
    """Evaluate the body; values between its ops are rounded to their types."""
    values: dict[SSAValue, Array] = dict(zip(op.body.block.args, operands, strict=True))
    for each in op.body.block.ops:
        if isinstance(each, npu.Yield):
            return tuple(values[value] for value in each.values)
        if isinstance(each, Constant):
            values[each.output] = each.load()
        else:
            results = evaluate(each, [values[operand] for operand in each.operands])
            values.update(zip(each.results, results, strict=True))
    return ()


def _checked(name: str, value: SSAValue, inputs: Mapping[str, Array]) -> Array:
    array = inputs.get(name)
    if array is None:
        raise CompilerUsageError(f"input {name!r} is missing")
    expected, shape = NUMPY[element_of(value)], shape_of(value)
    matching = [d in (-1, n) for d, n in zip(shape, array.shape, strict=False)]
    if array.dtype != expected or len(shape) != array.ndim or not all(matching):
        raise CompilerUsageError(
            f"input {name!r} is {array.dtype} {list(array.shape)}, "
            f"the model expects {expected} {list(shape)}"
        )
    return array
