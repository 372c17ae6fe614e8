"""Strides of a graph's arguments, as callers set them.

Source: docs/reference/level_zero.md#graph-structures.
"""

from __future__ import annotations

from collections.abc import Sequence

from driver_layer.loader.metadata import TensorInfo
from driver_layer.loader.strides import Strides
from driver_layer.ze import errors

MOST = 5
"""Numbers of ``ze_graph_argument_value_strides_t``."""

_FIELD = 1 << 32
"""Values that a stride in bytes can have."""


def checked_strides(tensor: TensorInfo, given: Sequence[int]) -> Strides:
    """Return the strides of a tensor, empty if they are the dense ones.

    Args:
        tensor: the argument.
        given: strides in elements, innermost dimension first; those of dimensions that the tensor
            does not have, or that have one element, are ignored.

    Raises:
        ZeError: INVALID_ARGUMENT: they are too few or too many, not strides of distinct elements,
            or others than the dense ones for a tensor whose blob is made for these alone.
    """
    rank = len(tensor.shape)
    if not rank <= len(given) <= MOST:
        problem = f"{len(given)} numbers for {rank} dimensions; give one for each, at most {MOST}"
        raise _invalid(tensor, given, problem)
    # In a dimension of one element a stride has no meaning, and may be anything.
    dims = list(zip(reversed(tensor.shape), given, reversed(tensor.strides), strict=False))
    if all(size == 1 or stride == dense for size, stride, dense in dims):
        return ()
    if not tensor.dynamic_strides:
        problem = (
            f"the blob takes a dense tensor {tensor.shape} only; compile the model with "
            "NPU_ENABLE_STRIDES_FOR, or copy the tensor"
        )
        raise _invalid(tensor, given, problem)
    bits, end = tensor.element.bits, 1
    for stride, size in sorted((stride, size) for size, stride, _ in dims if size > 1):
        if stride < end:
            raise _invalid(tensor, given, "elements overlap; give each element its own place")
        if stride * bits >= 8 * _FIELD:
            raise _invalid(tensor, given, f"a stride has over {_FIELD} bytes; lower it")
        end = stride * (size - 1) + end
    return tuple(stride if size > 1 else dense for size, stride, dense in dims)


def _invalid(tensor: TensorInfo, given: Sequence[int], problem: str) -> Exception:
    message = f"argument {tensor.name!r}, strides {tuple(given)}: {problem}"
    return errors.invalid_argument(message)
