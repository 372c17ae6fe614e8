"""Rows of K and V caches in 8-bit floats, as a quantized model itself rounds them.

A quantized model has FakeConverts after its caches, which compute (f8(x · scale - shift) + shift) /
scale of all rows for each token. Here f8(x · scale) is stored, and rows are divided when read: the
same numbers, in half the memory. NPUW does the same, with passes of OpenVINO that move
a FakeConvert before the Concat with new rows, and decompose it.

Source: docs/reference/npuw.md#kv-types; NPUW's optimize_kv_cache_storage.
"""

from __future__ import annotations

import logging
import math
from typing import cast

import numpy as np
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.quantize import FakeConvert
from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.state import Assign
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import convert_values
from compiler_layer.model import Model, Variable
from compiler_layer.rewriting.match import stored_constant
from npuw_layer.llm.graph.stored_floats import Scale
from npuw_layer.options.llm import KvElement

_log = logging.getLogger(__name__)


def common_rounding(model: Model, element: KvElement) -> KvElement | None:
    """Return the type that all FakeConverts of a model round to.

    Args:
        model: the stateful graph, which stays as it is.
        element: type requested by KV_CACHE_PRECISION; empty for none.

    Returns:
        The type; None if there is no common type, or caches cannot be stored in it, which the log
        explains.
    """
    every = [op for op in model.body.ops if isinstance(op, FakeConvert)]
    kinds = sorted({op.destination_type.data for op in every})
    if not every:
        why = "the model has no FakeConvert"
    elif len(kinds) > 1:
        why = f"its FakeConverts round to {' and '.join(kinds)}"
    elif element not in ("", kinds[0]):
        why = f"KV_CACHE_PRECISION is {element}"
    elif left := [each.name for each in model.variables() if _stays(each)]:
        why = f"{left[0]} is not read through one FakeConvert with a single scale and no shift"
    else:
        return cast(KvElement, kinds[0])
    _log.info("NPUW_LLM_OPTIMIZE_FP8 has no effect: %s", why)
    return None


def take_scales(model: Model) -> dict[str, Scale]:
    """Remove the FakeConverts of caches; caches without one are rounded without a scale.

    Returns:
        The scales by variable id.
    """
    found: dict[str, Scale] = {}
    for variable in model.variables():
        fake = _fake_convert(variable)
        scale = None if fake is None else _scale(fake)
        if fake is not None and scale is not None:
            found[variable.name] = scale
            Rewriter.replace_op(fake, [], [fake.x])
    return found


def _fake_convert(variable: Variable) -> FakeConvert | None:
    """Return the FakeConvert that all reads of a cache pass through; None if it is not one op."""
    readers = _readers(variable)
    fakes = [op for op in readers if isinstance(op, FakeConvert)]
    others = [op for op in readers if not isinstance(op, FakeConvert | Assign | ShapeOf)]
    return fakes[0] if len(fakes) == 1 and not others else None


def _readers(variable: Variable) -> list[Operation]:
    """Return the ops that read a cache together with its new rows."""
    return [] if variable.assign is None else [use.operation for use in variable.assign.value.uses]


def _stays(variable: Variable) -> bool:
    """Return whether a cache has a FakeConvert that cannot be removed."""
    fake = _fake_convert(variable)
    has_one = any(isinstance(op, FakeConvert) for op in _readers(variable))
    return has_one and (fake is None or _scale(fake) is None)


def _scale(fake: FakeConvert) -> Scale | None:
    """Return the scale if it is one non-zero number for all rows, without a shift."""
    scale = stored_constant(fake.scale)
    if scale is None or math.prod(shape_of(fake.scale)) != 1:
        return None
    if not all(np.isfinite(number) and number for number in _values(scale)):
        return None
    shift = None if fake.shift is None else stored_constant(fake.shift)
    if fake.shift is not None and (shift is None or any(_values(shift))):
        return None
    return Scale(
        scale.each(lambda one: Constant.inline(_value(one)[0])),
        scale.each(lambda one: Constant.inline(np.float32(1) / _value(one)[0])),
    )


def _values(constant: Constant) -> list[float]:
    """Return the constant's numbers in all repetitions of a block."""
    every = (constant.of_repetition(number) for number in range(constant.repetitions))
    return [float(number) for each in every for number in _value(each)]


def _value(constant: Constant) -> np.ndarray:
    return convert_values(constant.load(), element_of(constant.output), "f32").reshape(-1)
