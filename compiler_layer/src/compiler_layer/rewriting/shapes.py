"""Propagation of input shapes through a graph."""

from __future__ import annotations

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, check_shape, element_of, is_static, shape_of
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.rewriting.constants import fold
from compiler_layer.rewriting.dead_code import remove_dead_code

_SHAPE_ELEMENTS = 8192
"""Maximum length of integer vectors that count as shapes, and are folded during propagation."""

_SHAPE_TYPES = ("i64", "i32", "boolean")


def parse_shapes(text: str) -> dict[str, Shape]:
    """Parse ``input_ids=1x128,attention_mask=1x256``.

    Raises:
        CompilerUsageError: the text is malformed.
    """
    shapes: dict[str, Shape] = {}
    for part in filter(None, text.split(",")):
        name, _, dims = part.partition("=")
        try:
            shape = tuple(int(d) for d in dims.split("x")) if dims else ()
            check_shape(shape)
            shapes[name.strip()] = shape
        except ValueError:
            raise CompilerUsageError(f"{part!r} is not a shape; write name=1x128") from None
    return shapes


def specialize_shapes(model: Model) -> None:
    """Propagate the input shapes through the graph and fold the arithmetic on shapes.

    Raises:
        CompilerUsageError: operands do not fit together, or the shape of an input is not given.
        UnsupportedModel: the value of a shape cannot be computed.
    """
    for op in model.ops:
        if not isinstance(op, OvOp):
            continue
        try:
            op.refresh_types()
        except ValueError as error:
            raise CompilerUsageError(f"{op.described}: {error}") from None
        if _computes_shapes(op):
            fold(op)
    remove_dead_code(model)
    model.refresh_signature()
    _check_inputs(model)


def _computes_shapes(op: OvOp) -> bool:
    return all(
        element_of(result) in _SHAPE_TYPES and _elements(shape_of(result)) <= _SHAPE_ELEMENTS
        for result in op.results
    )


def _elements(shape: Shape) -> int:
    count = 1
    for d in shape:
        count *= d if d >= 0 else _SHAPE_ELEMENTS + 1
    return count


def _check_inputs(model: Model) -> None:
    open_inputs = [port.name for port in model.inputs if not is_static(shape_of(port.value))]
    open_variables = [
        variable.name
        for variable in model.variables()
        if variable.read is not None and not is_static(shape_of(variable.read.output))
    ]
    if open_inputs or open_variables:
        names = ", ".join((open_inputs + open_variables)[:6])
        raise CompilerUsageError(f"an NPU needs static shapes; give the shapes of: {names} …")


def first_open(model: Model) -> OvOp | None:
    """Return the first op with a data-dependent shape, or None; later ones follow from it.

    Args:
        model: a result of ``specialize_shapes``.
    """
    return next(
        (
            op
            for op in model.body.ops
            if isinstance(op, OvOp) and not all(is_static(shape_of(r)) for r in op.results)
        ),
        None,
    )
