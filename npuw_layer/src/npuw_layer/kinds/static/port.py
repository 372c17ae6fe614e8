"""Inputs and outputs of a static model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from compiler_layer.elements import NUMPY
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.api.model_port import OPEN, OpenPort, PortKey, find_port
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Array, TensorInfo
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.remote.properties import TensorType
from npuw_layer.remote.tensor import RemoteTensor


@dataclass(frozen=True, slots=True)
class StaticPort(OpenPort):
    """An input or output of a static model; its first dimension may be an open batch."""

    is_input: bool

    least: ClassVar[int] = 1
    """Smallest size of an open dimension."""

    @staticmethod
    def of(info: TensorInfo, index: int, is_input: bool) -> StaticPort:
        """Return the port of a program's tensor."""
        return StaticPort(info.name, info.element, index, info.shape, is_input)

    def with_batch(self, batch: int) -> StaticPort:
        """Return the port of one item with a batch, which may be ``OPEN``."""
        return replace(self, partial_shape=(batch, *self.partial_shape[1:]))

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of the port.

        Raises:
            TensorError: the batch is open until an inference.
        """
        if OPEN in self.partial_shape:
            raise TensorError(f"{self.any_name!r} has an open batch; see its partial_shape")
        return self.partial_shape

    def get_shape(self) -> tuple[int, ...]:
        """Return the dimensions; same as ``shape``."""
        return self.shape

    @property
    def byte_size(self) -> int:
        """Size of the port's tensor in bytes."""
        return math.prod(self.shape) * NUMPY[self.element_type].itemsize

    def check_tensor(self, tensor: Tensor | RemoteTensor) -> None:
        """Check that a tensor can be bound.

        Raises:
            TensorError: the tensor does not fit, or the host may not write to it.
            RemoteError: the remote tensor was made for the other direction.
        """
        if isinstance(tensor, RemoteTensor):
            self.check(tensor.element_type, tensor.shape)
            self._check_direction(tensor)
            return
        self.check_array(tensor.data)
        if not (self.is_input or tensor.data.flags.writeable):
            raise TensorError(f"output {self.any_name!r}: the array is read-only")

    def check_array(self, array: Array) -> None:
        """Check that an array's type and shape fit.

        Raises:
            TensorError: the type or shape differs.
        """
        fits = array.dtype == NUMPY[self.element_type]
        self.check(self.element_type if fits else str(array.dtype), array.shape)

    def check(self, element: str, shape: tuple[int, ...]) -> None:
        """Check that a tensor's type and shape fit.

        Raises:
            TensorError: the type or shape differs.
        """
        fits = len(shape) == len(self.partial_shape) and all(
            size >= self.least if own == OPEN else size == own
            for own, size in zip(self.partial_shape, shape, strict=True)
        )
        if element != self.element_type or not fits:
            side = "input" if self.is_input else "output"
            dims = ", ".join("?" if dim == OPEN else str(dim) for dim in self.partial_shape)
            raise TensorError(
                f"{side} {self.any_name!r} is {self.element_type} [{dims}], "
                f"not {element} {list(shape)}"
            )

    def _check_direction(self, tensor: RemoteTensor) -> None:
        made_for = tensor.properties.tensor_type
        wanted = TensorType.INPUT if self.is_input else TensorType.OUTPUT
        if made_for not in (wanted, TensorType.BINDED):
            raise RemoteError(
                f"{self.any_name!r} is an {wanted.lower()}; the tensor was made with "
                f"TENSOR_TYPE {made_for}"
            )


def tensor_port(ports: Sequence[StaticPort], key: PortKey) -> StaticPort:
    """Return an input or output by name, or by the port itself.

    Raises:
        TensorError: no such tensor exists, or the key is an index.
    """
    if isinstance(key, int):
        raise TensorError(
            f"{key} names an input and an output; use set_input_tensor or a similar method"
        )
    return find_port(ports, key, "tensor")


def is_port(info: TensorInfo) -> bool:
    """Return whether a program's input or output is the model's, not a variable or a weight."""
    return not info.name.startswith((READ_PREFIX, ASSIGN_PREFIX, WEIGHT_PREFIX))
