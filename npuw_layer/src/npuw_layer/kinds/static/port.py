"""Inputs and outputs of a static model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compiler_layer.elements import NUMPY
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.api.model_port import ModelPort
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, Array, TensorInfo
from npuw_layer.errors import TensorError


@dataclass(frozen=True, slots=True)
class StaticPort(ModelPort):
    """An input or output of a static model."""

    shape: tuple[int, ...]
    is_input: bool

    @staticmethod
    def of(info: TensorInfo, index: int, is_input: bool) -> StaticPort:
        """Return the port of a program's tensor."""
        return StaticPort(info.name, info.element, index, info.shape, is_input)

    @property
    def partial_shape(self) -> tuple[int, ...]:
        """Dimensions of the port, all fixed."""
        return self.shape

    def get_partial_shape(self) -> tuple[int, ...]:
        """Return the dimensions."""
        return self.shape

    @property
    def byte_size(self) -> int:
        """Size of the port's tensor in bytes."""
        return math.prod(self.shape) * NUMPY[self.element_type].itemsize

    def get_shape(self) -> tuple[int, ...]:
        """Return the dimensions."""
        return self.shape

    def check(self, element: str, shape: tuple[int, ...]) -> None:
        """Check that a tensor's type and shape fit.

        Raises:
            TensorError: the type or shape differs.
        """
        if element != self.element_type or shape != self.shape:
            side = "input" if self.is_input else "output"
            raise TensorError(
                f"{side} {self.any_name!r} is {self.element_type} {list(self.shape)}, "
                f"not {element} {list(shape)}"
            )

    def check_array(self, array: Array) -> None:
        """Check that an array's type and shape fit.

        Raises:
            TensorError: the type or shape differs.
        """
        fits = array.dtype == NUMPY[self.element_type]
        self.check(self.element_type if fits else str(array.dtype), array.shape)


def is_port(info: TensorInfo) -> bool:
    """Return whether a program's input or output is the model's, not a variable or a weight."""
    return not info.name.startswith((READ_PREFIX, ASSIGN_PREFIX, WEIGHT_PREFIX))
