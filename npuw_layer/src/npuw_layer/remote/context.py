"""Factory of remote tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from compiler_layer.elements import NUMPY
from npuw_layer.backends.protocols import ImportsMemory
from npuw_layer.backends.tensor import Uncopied
from npuw_layer.errors import RemoteError
from npuw_layer.remote.memory import make_memory
from npuw_layer.remote.properties import L0_CONTEXT, parse_properties
from npuw_layer.remote.tensor import RemoteTensor, element_name

_MOST_DIMENSIONS = 64
"""Limit of numpy's arrays, which hold a tensor's values; only numpy's C headers state it."""


class RemoteContext(Uncopied):
    """Factory of tensors in one device's memory space, which the devices of one Core share.

    Args:
        device: the NPU, or another device that imports memory.
    """

    def __init__(self, device: ImportsMemory) -> None:
        self._device = device

    def create_tensor(
        self,
        type: str | npt.DTypeLike,
        shape: Sequence[int],
        properties: Mapping[str, Any] | None = None,
    ) -> RemoteTensor:
        """Allocate or import a tensor that the NPU accesses in place.

        Args:
            type: by OpenVINO's name ("f32"), numpy's type, or an ``openvino.Type``.
            shape: its dimensions; a tensor has at least one element.
            properties: MEM_TYPE and the properties that it requires, see ``remote.properties``;
                without any, zeroed memory is allocated.

        Raises:
            RemoteError: the properties are wrong, or do not match the memory.
            DeviceError: Level Zero failed.
        """
        element, dims = element_name(type), _dimensions(shape)
        checked = parse_properties(properties)
        nbytes = math.prod(dims) * NUMPY[element].itemsize
        span = make_memory(self._device, checked, nbytes)
        return RemoteTensor(self._device, element, dims, span, checked)

    def create_host_tensor(
        self,
        type: str | npt.DTypeLike,
        shape: Sequence[int],
    ) -> RemoteTensor:
        """Allocate a tensor that host and NPU both access, so that no copies are needed."""
        return self.create_tensor(type, shape)

    def get_params(self) -> dict[str, Any]:
        """Return the Level Zero context, in which memory for SHARED_BUF is allocated."""
        return {L0_CONTEXT: self._device.memory_space}

    def get_device_name(self) -> str:
        """Return the name of the tensors' device."""
        return "NPU"


def _dimensions(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        dims = tuple(map(operator.index, shape))
    except TypeError:
        raise RemoteError(f"shape {shape!r} is not a sequence of integers") from None
    if len(dims) > _MOST_DIMENSIONS:
        raise RemoteError(
            f"a tensor of {len(dims)} dimensions: at most {_MOST_DIMENSIONS} are possible, as "
            "in numpy's arrays"
        )
    if min(dims, default=1) <= 0:
        raise RemoteError(f"shape {list(dims)} has no elements; use positive dimensions")
    return dims
