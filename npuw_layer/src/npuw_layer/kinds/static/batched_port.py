"""Inputs and outputs of a model that is run item by item."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.elements import NUMPY
from npuw_layer.api.model_port import OPEN, OpenPort
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import TensorError
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.tensor import RemoteTensor


@dataclass(frozen=True, slots=True)
class BatchedPort(OpenPort):
    """An input or output whose first dimension is the batch."""

    is_input: bool

    @staticmethod
    def of(item: StaticPort, batch: int) -> BatchedPort:
        """Return the port of one item with a batch, which may be ``OPEN``."""
        dims = (batch, *item.shape[1:])
        return BatchedPort(item.any_name, item.element_type, item.index, dims, item.is_input)

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

    def items(self, tensor: Tensor | RemoteTensor) -> int:
        """Return the number of items in a tensor.

        Raises:
            TensorError: the tensor does not fit.
        """
        if isinstance(tensor, RemoteTensor):
            element = tensor.element_type
        else:
            fits = tensor.data.dtype == NUMPY[self.element_type]
            element = self.element_type if fits else str(tensor.data.dtype)
        batch, *rest = self.partial_shape
        alike = [*tensor.shape[1:]] == rest and batch in (OPEN, *tensor.shape[:1])
        if element != self.element_type or not alike or not tensor.shape or not tensor.shape[0]:
            side = "input" if self.is_input else "output"
            dims = ", ".join("?" if dim == OPEN else str(dim) for dim in self.partial_shape)
            raise TensorError(
                f"{side} {self.any_name!r} is {self.element_type} [{dims}], "
                f"not {element} {list(tensor.shape)}"
            )
        return tensor.shape[0]
