"""Binding of one input or output of a request to a tensor, and its location on the device.

Initially, a port is bound to memory of the request that host and device share; ``get_tensor``
returns a view of it, and nothing is copied. A host tensor of the caller is copied to that memory
before each inference, or from it afterwards. A remote tensor of the same context is bound directly;
one of another context is copied like a host tensor.

Source: Intel KB 000101553; docs/reference/npuw.md#tensors-of-requests (set_tensor, infer).
"""

from __future__ import annotations

import numpy as np

from npuw_layer.api.transfers import TensorTransfers
from npuw_layer.backends.protocols import (
    Array,
    ImportsMemory,
    Program,
)
from npuw_layer.backends.tensor import Tensor
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.memory import MemoryRange, make_memory
from npuw_layer.remote.properties import RemoteProperties
from npuw_layer.remote.tensor import RemoteTensor


class BoundTensor:
    """The binding of one port.

    Args:
        device: the device of the request.
        program: the program whose argument is bound.
        port: the input or output.
        transfers: counters of the port's bytes.
    """

    def __init__(
        self,
        device: ImportsMemory,
        program: Program,
        port: StaticPort,
        transfers: TensorTransfers,
    ) -> None:
        self.port = port
        self._device = device
        self._program = program
        self._transfers = transfers
        self._own: RemoteTensor | None = None
        self._given: Tensor | RemoteTensor | None = None
        self._bound: MemoryRange | None = None
        self._filled = False
        transfers.bound_to = "the request's own memory"

    @property
    def tensor(self) -> Tensor | RemoteTensor:
        """The caller's tensor, or else a view of the request's own memory."""
        return Tensor(self._own_memory().data) if self._given is None else self._given

    def set(self, tensor: Tensor | RemoteTensor) -> None:
        """Bind a caller's tensor for the following inferences.

        Raises:
            TensorError: the tensor does not fit, or the host may not write to it.
            RemoteError: the remote tensor was made for the other direction.
        """
        if tensor is self._given:
            return
        self.port.check_tensor(tensor)
        if isinstance(tensor, RemoteTensor):
            near = tensor.is_of(self._device)
            of = "" if near else " of another context"
            self._transfers.bound_to = f"{tensor.properties.mem_type} tensor{of}"
        else:
            self._transfers.bound_to = "host tensor"
        self._given = tensor

    def fill(self, values: Array) -> None:
        """Copy values, which must fit, into the request's own memory, and bind that memory."""
        own = self._own_memory()
        self._given = None
        self._transfers.bound_to = "the request's own memory"
        own.data[...] = values
        self._filled = True
        self._transfers.host_to_device += self.port.byte_size

    def before(self) -> None:
        """Prepare an inference: bind the memory, and copy in values that the device cannot access.

        Raises:
            RemoteError: the memory of a remote tensor was freed.
        """
        near = self._near()
        span = (near or self._own_memory()).span()
        if span is not self._bound:
            self._bound = None  # stays None if binding fails
            self._program.bind(self.port.any_name, span.memory, span.offset)
            self._bound = span
        if not self.port.is_input:
            return
        if near is None and self._given is not None:
            self._own_memory().copy_from(self._given)
            self._transfers.host_to_device += self.port.byte_size
        elif not self._filled:
            self._transfers.in_place += self.port.byte_size
        self._filled = False

    def after(self) -> None:
        """Copy out values that the device could not write in place.

        Raises:
            RemoteError: the memory of a remote tensor was freed.
        """
        if self.port.is_input:
            return
        if self._given is None or self._near() is not None:
            self._transfers.in_place += self.port.byte_size
            return
        own = self._own_memory()
        if isinstance(self._given, RemoteTensor):
            self._given.copy_from(own)
        else:
            own.copy_to(self._given)
        self._transfers.device_to_host += self.port.byte_size

    def value(self, shared: bool) -> Array | None:
        """Return output values on the host after an inference; None if bound to a remote tensor.

        Args:
            shared: return a view of the request's own memory, which the next inference overwrites,
                instead of a copy.
        """
        if self._given is None and not shared:
            # The caller gets a copy after all: move the bytes from one counter to the other.
            self._transfers.in_place -= self.port.byte_size
            self._transfers.device_to_host += self.port.byte_size
            return np.array(self._own_memory().data)
        tensor = self.tensor
        return tensor.data if isinstance(tensor, Tensor) else None

    def _near(self) -> RemoteTensor | None:
        """Return the tensor that the device uses directly; None if values must be copied."""
        given = self._given
        if given is None:
            return self._own_memory()
        return given if isinstance(given, RemoteTensor) and given.is_of(self._device) else None

    def _own_memory(self) -> RemoteTensor:
        """Return the request's own memory, allocated on first use."""
        if self._own is None:
            properties, port = RemoteProperties(), self.port
            span = make_memory(self._device, properties, port.byte_size)
            self._own = RemoteTensor(self._device, port.element_type, port.shape, span, properties)
        return self._own
