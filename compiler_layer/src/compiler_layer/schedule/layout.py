"""Layout of the tensors of a lowered model in DDR.

Reshapes, transposes, slices and broadcasts become views, at no cost. Elements are copied only if a
view cannot express a reshape.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov import shape, slicing
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.elements import FOUR_BIT, stored_bytes
from compiler_layer.errors import CompilerUsageError, UnsupportedModel, UnsupportedOps
from compiler_layer.model import NO_PORTS, Model, Port, PortSelection
from compiler_layer.schedule.views import Buffer, Space, View

HARDWARE = (npu.MatMul, npu.Attention, npu.Gather, npu.Concat, npu.Kernel)


@dataclass(frozen=True, slots=True)
class HardwareOp:
    """An op with its operands and results in memory; ``op`` is None for a copy."""

    name: str
    op: Operation | None
    operands: tuple[View, ...]
    results: tuple[View, ...]


@dataclass(slots=True)
class BufferLayout:
    """The hardware ops of a model in order, and all buffers they use."""

    ops: list[HardwareOp] = field(default_factory=list[HardwareOp])
    inputs: list[Buffer] = field(default_factory=list[Buffer])
    outputs: list[Buffer] = field(default_factory=list[Buffer])
    constants: list[Buffer] = field(default_factory=list[Buffer])
    scratch: list[Buffer] = field(default_factory=list[Buffer])


def layout(
    model: Model, written_last: Collection[str] = (), strided: PortSelection = NO_PORTS
) -> BufferLayout:
    """Place the tensors of a lowered model.

    Args:
        model: lowered model.
        written_last: outputs that are copied to after everything else has been computed.
        strided: ports whose strides the caller chooses; they are copied from and to dense tensors.

    Raises:
        UnsupportedOps: ops are left that no lowering handled.
        UnsupportedModel: the model has no outputs, or a strided port has 4-bit elements.
        CompilerUsageError: an output is directly an input or a constant.
    """
    left = [
        op for op in model.body.ops if not isinstance(op, (*HARDWARE, *VIEWS, npu.Bytes, Constant))
    ]
    unknown = [op for op in left if not op.has_trait(IsTerminator)]
    if unknown:
        raise UnsupportedOps("model", [(op.name, _name(op)) for op in unknown])
    return _Planner(model, written_last, strided).plan()


VIEWS = (
    shape.Reshape,
    shape.Unsqueeze,
    shape.Squeeze,
    shape.Transpose,
    slicing.Slice,
    slicing.Split,
    slicing.VariadicSplit,
    shape.Broadcast,
)
"""Ops that become views of their operand, or copies at worst."""


def view_refusal(op: OvOp) -> str | None:
    """Return why an op cannot be a view, or None."""
    backwards = isinstance(op, slicing.Slice) and any((s.step or 1) < 0 for s in op.slices() or ())
    return "with a negative step" if backwards else None


def _name(op: Operation) -> str:
    attribute = op.attributes.get(NAME_ATTRIBUTE)
    return getattr(attribute, "data", "") or op.name


class _Planner:
    """Layout of one model."""

    def __init__(self, model: Model, written_last: Collection[str], strided: PortSelection) -> None:
        self._model = model
        self._written_last = written_last
        self._strided = strided
        self._layout = BufferLayout()
        self._views: dict[SSAValue, View] = {}
        self._outputs: dict[SSAValue, int] = {}
        self._output_indices: dict[SSAValue, list[int]] = {}

    def plan(self) -> BufferLayout:
        self._add_ports()
        for op in self._model.body.ops:
            if isinstance(op, HARDWARE):
                self._place(op)
            elif isinstance(op, (*VIEWS, npu.Bytes)):
                self._add_views(op)
            for result in op.results:
                self._fill_outputs(result)
        for value in self._model.body.args:
            self._fill_outputs(value)
        self._write_last()
        if not self._layout.outputs:
            raise UnsupportedModel("the model has no outputs")
        return self._layout

    def _add_ports(self) -> None:
        for index, port in enumerate(self._model.inputs):
            buffer = _port_buffer(port, Space.INPUT, index, port.name in self._strided.inputs)
            self._layout.inputs.append(buffer)
            view = _dense(buffer, port.value)
            if buffer.strided:
                dense = _dense(self._new_scratch(port.name, port.value), port.value)
                view = self._copy(port.name, view, dense)
            self._views[port.value] = view
        for index, port in enumerate(self._model.outputs):
            buffer = _port_buffer(port, Space.OUTPUT, index, port.name in self._strided.outputs)
            self._layout.outputs.append(buffer)
            if port.name in self._written_last:
                continue
            self._output_indices.setdefault(port.value, []).append(index)
            # The first output that is a hardware op's own result is written directly.
            if isinstance(port.value.owner, HARDWARE) and not buffer.strided:
                self._outputs.setdefault(port.value, index)

    def _view(self, value: SSAValue) -> View:
        view = self._views.get(value)
        if view is None:
            owner = value.owner
            if not isinstance(owner, Constant):
                raise CompilerUsageError(f"a value of {owner} is used before its definition")
            index = len(self._layout.constants)
            buffer = Buffer(_name(owner), Space.CONSTANT, owner.nbytes, index, constant=owner)
            self._layout.constants.append(buffer)
            view = self._views[value] = _dense(buffer, value)
        return view

    def _place(self, op: Operation) -> None:
        operands = [self._view(operand) for operand in op.operands]
        if isinstance(op, npu.Gather):
            operands = self._readable(op, *operands)
        results = tuple(self._result(op, result) for result in op.results)
        self._views.update(zip(op.results, results, strict=True))
        self._layout.ops.append(HardwareOp(_name(op), op, tuple(operands), results))

    def _readable(self, op: npu.Gather, table: View, indices: View) -> list[View]:
        """Return a table with contiguous rows, and indices in a list, as the DMA reads them."""
        if table.strides[-1] != table.itemsize and table.shape[-1] != 1:
            table = self._dense_copy(op, table, op.table)
        if indices.reshaped((math.prod(indices.shape),)) is None:
            indices = self._dense_copy(op, indices, op.indices)
        return [table, indices]

    def _dense_copy(self, op: Operation, view: View, value: SSAValue) -> View:
        return self._copy(_name(op), view, _dense(self._new_scratch(_name(op), value), value))

    def _result(self, op: Operation, value: SSAValue) -> View:
        output = self._outputs.get(value)
        if output is not None:
            return _dense(self._layout.outputs[output], value)
        return _dense(self._new_scratch(_name(op), value), value, _order(value))

    def _new_scratch(self, name: str, value: SSAValue) -> Buffer:
        buffer = Buffer(name, Space.SCRATCH, _nbytes(value), len(self._layout.scratch))
        self._layout.scratch.append(buffer)
        return buffer

    def _copy(self, name: str, source: View, target: View) -> View:
        self._layout.ops.append(HardwareOp(name, None, (source,), (target,)))
        return target

    def _add_views(self, op: Operation) -> None:
        source = self._view(op.operands[0])
        for result, view in zip(op.results, _derived(op, source), strict=True):
            if view is None:
                whole = _dense(self._new_scratch(_name(op), result), result)
                same_shape = whole.reshaped(source.shape)
                assert same_shape is not None  # a dense buffer has a view of any shape
                self._copy(_name(op), source, same_shape)
                view = whole
            self._views[result] = view

    def _fill_outputs(self, value: SSAValue) -> None:
        """Copy a value to its outputs, except to one that its op writes directly."""
        for index in self._output_indices.get(value, ()):
            if self._outputs.get(value) != index:
                target = _dense(self._layout.outputs[index], value)
                self._copy(self._layout.outputs[index].name, self._view(value), target)

    def _write_last(self) -> None:
        """Copy values to outputs that may share memory with inputs, after all inputs are read."""
        copies: list[tuple[View, View]] = []
        for index, port in enumerate(self._model.outputs):
            if port.name not in self._written_last:
                continue
            view = self._view(port.value)
            if view.buffer.space is Space.INPUT:
                # The copies before this one may overwrite the input.
                whole = _dense(self._new_scratch(port.name, port.value), port.value)
                view = self._copy(port.name, view, whole)
            copies.append((view, _dense(self._layout.outputs[index], port.value)))
        for source, target in copies:
            self._copy(target.buffer.name, source, target)


def _derived(op: Operation, source: View) -> Sequence[View | None]:
    """Return the views that a view op makes of its operand."""
    match op:
        case shape.Transpose():
            return [source.transposed(op.permutation())]
        case slicing.Slice():
            slices = op.slices()
            assert slices is not None  # shapes are static
            refusal = view_refusal(op)
            if refusal is not None:
                raise UnsupportedOps("model", [(f"Slice {refusal}", _name(op))])
            return [source.sliced(slices)]
        case shape.Broadcast():
            return [source.broadcast(shape_of(op.output))]
        case npu.Bytes():
            return [_dense(source.buffer, op.output)]  # of an input, so the buffer is dense
        case slicing.Split() | slicing.VariadicSplit():
            return _split(op, source)
        case _:
            return [source.reshaped(_seen(op.results[0]))]


def _split(op: slicing.Split | slicing.VariadicSplit, source: View) -> list[View | None]:
    shapes = [shape_of(result) for result in op.outputs]
    cut = [i for i, d in enumerate(source.shape) if any(part[i] != d for part in shapes)]
    begins = [0] * len(source.shape)
    views: list[View | None] = []
    for part in shapes:
        views.append(source.block(begins, part))
        for axis in cut:
            begins[axis] += part[axis]
    return views


def _port_buffer(port: Port, space: Space, index: int, strided: bool) -> Buffer:
    if strided and element_of(port.value) in FOUR_BIT:
        raise UnsupportedModel(f"{port.name!r}: strides of 4-bit elements; convert it, or copy it")
    return Buffer(port.name, space, _nbytes(port.value), index, strided=strided)


def _order(value: SSAValue) -> list[int]:
    """Return the order in which a result's only view, if it is a transpose, is dense."""
    only = value.get_user_of_unique_use()
    return only.permutation() if isinstance(only, shape.Transpose) else []


def _nbytes(value: SSAValue) -> int:
    return stored_bytes(element_of(value), math.prod(shape_of(value)))


def _dense(buffer: Buffer, value: SSAValue, order: Sequence[int] = ()) -> View:
    """Return a view of a complete buffer; 4-bit elements are paired along the last dimension."""
    return View.dense(buffer, element_of(value), _seen(value), order)


def _seen(value: SSAValue) -> Shape:
    """Return the shape of a value's view."""
    dims = shape_of(value)
    return (*dims[:-1], dims[-1] // 2) if element_of(value) in FOUR_BIT else dims
