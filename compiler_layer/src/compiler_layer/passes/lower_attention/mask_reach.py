"""Reach of a mask: the positions that rows may attend to, as known at compile time.

Most masks have a constant part: no token attends to later ones. The rest depends on inputs and can
only mask more positions.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import logic, shape
from compiler_layer.dialects.ov.constant import Constant, constant_of, values_of
from compiler_layer.dialects.ov.elementwise import Select
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of, is_static, shape_of
from compiler_layer.reference.interpreter import evaluate
from compiler_layer.rewriting.match import scalar_of

Flags = npt.NDArray[np.bool_]

_VERY_LOW = -3e4
"""Upper bound of addends that mask a position: exporters add the lowest f16 or f32."""

_MOST = 1 << 26
"""Maximum number of elements of a mask that is evaluated."""

_VIEWS = (shape.Reshape, shape.Unsqueeze, shape.Squeeze)
_ALL = (logic.BitwiseAnd, logic.LogicalAnd)
_ANY = (logic.BitwiseOr, logic.LogicalOr)


def reach_of(mask: SSAValue, rows: int, positions: int) -> tuple[int, ...] | None:
    """Return, for each row, the end of the positions that the mask may let it attend to.

    Args:
        mask: boolean or additive; broadcasts to [..., rows, positions].
        rows: number of queries.
        positions: number of keys.

    Returns:
        At least 1 for each row; None if every row may attend to the last position.
    """
    if rows * positions > _MOST:
        return None
    found = _Masks().forbidden(mask)
    if found is None or found.ndim > 4:
        return None
    whole = np.broadcast_to(found, (*found.shape[:-2], rows, positions))
    seen: Flags = np.logical_not(whole).reshape(-1, rows, positions).max(axis=0)
    behind = np.where(seen, np.arange(1, positions + 1), 1).max(axis=1)
    reach: list[int] = behind.tolist()
    return None if min(reach) == positions else tuple(reach)


class _Masks:
    """Constant parts of masks; each value is evaluated once."""

    def __init__(self) -> None:
        self._found: dict[SSAValue, Flags | None] = {}

    def forbidden(self, mask: SSAValue) -> Flags | None:
        """Return the positions that are masked for all inputs; None if unknown."""
        dims = shape_of(mask)
        if not is_static(dims) or math.prod(dims) > _MOST:
            return None
        if element_of(mask) == "boolean":
            return self._never(mask)
        op, known = mask.owner, constant_of(mask)
        if known is not None:
            values = _loaded(known)
            return None if values is None else np.less(values.astype(np.float32), _VERY_LOW)
        if isinstance(op, Select):
            low = scalar_of(op.otherwise)
            return self._never(op.condition) if low is not None and low < _VERY_LOW else None
        return _viewed(self.forbidden(op.operands[0]), op) if isinstance(op, _VIEWS) else None

    def _never(self, value: SSAValue) -> Flags | None:
        """Return the positions at which booleans are false for all inputs."""
        if value not in self._found:
            self._found[value] = self._computed(value)
        return self._found[value]

    def _computed(self, value: SSAValue) -> Flags | None:
        op, known = value.owner, constant_of(value)
        if known is not None:
            loaded = _loaded(known)
            return None if loaded is None else ~loaded.astype(np.bool_)
        if isinstance(op, _ALL):
            sides = [side for side in map(self._never, op.operands) if side is not None]
            return np.logical_or(*sides) if len(sides) == 2 else next(iter(sides), None)
        if isinstance(op, _ANY):
            a, b = map(self._never, op.operands)
            return None if a is None or b is None else np.logical_and(a, b)
        if isinstance(op, logic.Comparison):
            return _compared(op)
        return _viewed(self._never(op.operands[0]), op) if isinstance(op, _VIEWS) else None


def _compared(op: logic.Comparison) -> Flags | None:
    """Evaluate a comparison of constants that was too large to be folded."""
    operands = [values_of(operand) for operand in op.operands]
    dims = shape_of(op.results[0])
    if any(one is None for one in operands) or math.prod(dims) > _MOST:
        return None
    (found,) = evaluate(op, [one for one in operands if one is not None])
    return ~found.astype(np.bool_)


def _viewed(found: Flags | None, op: OvOp) -> Flags | None:
    if found is None:
        return None
    whole = np.broadcast_to(found, shape_of(op.operands[0]))
    return whole.reshape(shape_of(op.results[0]))


def _loaded(known: Constant) -> npt.NDArray[np.generic] | None:
    return None if known.is_repeated else known.load()
