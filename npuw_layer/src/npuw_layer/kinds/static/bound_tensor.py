"""One input or output of a request: what the caller bound it to, and where the device sees it.

How it works. An input or output begins with memory of the request's own that host and device both
reach; ``get_tensor`` shows it, and nothing is copied. A host tensor of the caller is copied to that
memory before each inference, or from it after each. A remote tensor of the same context is bound
itself; one of another context is copied as a host tensor is.

Source: Intel KB 000101553; fact sheet npuw §e.4 (set_tensor, infer).
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
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.kinds.static.port import StaticPort
from npuw_layer.remote.memory import Piece, make_memory
from npuw_layer.remote.properties import RemoteProperties, TensorType
from npuw_layer.remote.tensor import RemoteTensor


class BoundTensor:
    """The binding of one port.

    Args:
        device: where the request runs.
        program: what is bound.
        port: which of its inputs or outputs.
        transfers: where its bytes are counted.
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
        self._bound: Piece | None = None
        self._filled = False
        transfers.bound_to = "the request's own memory"

    @property
    def tensor(self) -> Tensor | RemoteTensor:
        """What the caller gave; else a view of the request's own memory."""
        return Tensor(self._own_memory().data) if self._given is None else self._given

    @property
    def value(self) -> Array | None:
        """An output as the host has it after an inference; None if it is a remote tensor's.

        A view where it is the request's own memory: the next inference overwrites it.
        """
        tensor = self.tensor
        return tensor.data if isinstance(tensor, Tensor) else None

    def set(self, tensor: Tensor | RemoteTensor) -> None:
        """Bind to a caller's tensor, from the next inference on.

        Raises:
            TensorError: it does not fit, or the host may not write to it.
            RemoteError: it is not made for this side.
        """
        if tensor is self._given:
            return
        self.check(tensor)
        if isinstance(tensor, RemoteTensor):
            near = tensor.is_of(self._device)
            of = "" if near else " of another context"
            self._transfers.bound_to = f"{tensor.properties.mem_type} tensor{of}"
        else:
            self._transfers.bound_to = "host tensor"
        self._given = tensor

    def check(self, tensor: Tensor | RemoteTensor) -> None:
        """See that a tensor can be bound; ``set`` raises the same.

        Raises:
            TensorError, RemoteError: it cannot.
        """
        if isinstance(tensor, RemoteTensor):
            self.port.check(tensor.element_type, tensor.shape)
            self._check_side(tensor)
            return
        self.port.check_array(tensor.data)
        if not (self.port.is_input or tensor.data.flags.writeable):
            raise TensorError(f"output {self.port.any_name!r}: the array is read-only")

    def fill(self, values: Array) -> None:
        """Copy values into the request's own memory, and bind to that; they fit."""
        own = self._own_memory()
        self._given = None
        self._transfers.bound_to = "the request's own memory"
        own.data[...] = values
        self._filled = True
        self._transfers.host_to_device += self.port.byte_size

    def before(self) -> None:
        """Make ready for an inference: bind, and copy in what the device does not reach.

        Raises:
            RemoteError: the memory of a remote tensor was freed.
        """
        near = self._near()
        piece = (near or self._own_memory()).piece()
        if piece is not self._bound:
            self._bound = None  # until it is
            self._program.bind(self.port.any_name, piece.memory, piece.offset)
            self._bound = piece
        if not self.port.is_input:
            return
        if near is None and self._given is not None:
            self._own_memory().copy_from(self._given)
            self._transfers.host_to_device += self.port.byte_size
        elif not self._filled:
            self._transfers.in_place += self.port.byte_size
        self._filled = False

    def after(self) -> None:
        """Copy out what the device could not write in place.

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

    def copied_value(self) -> Array | None:
        """An output as an array that stays as it is; None if it is a remote tensor's."""
        if self._given is not None:
            return self.value
        # It is no longer in place that the caller finds it.
        self._transfers.in_place -= self.port.byte_size
        self._transfers.device_to_host += self.port.byte_size
        return np.array(self._own_memory().data)

    def _near(self) -> RemoteTensor | None:
        """The tensor that the device itself uses, if host and device share it."""
        given = self._given
        if given is None:
            return self._own_memory()
        return given if isinstance(given, RemoteTensor) and given.is_of(self._device) else None

    def _own_memory(self) -> RemoteTensor:
        """The request's own memory; taken when it is first needed."""
        if self._own is None:
            properties, port = RemoteProperties(), self.port
            piece = make_memory(self._device, properties, port.byte_size)
            self._own = RemoteTensor(self._device, port.element_type, port.shape, piece, properties)
        return self._own

    def _check_side(self, tensor: RemoteTensor) -> None:
        made_for = tensor.properties.tensor_type
        wanted = TensorType.INPUT if self.port.is_input else TensorType.OUTPUT
        if made_for not in (wanted, TensorType.BINDED):
            raise RemoteError(
                f"{self.port.any_name!r} is an {wanted.lower()}; the tensor was made with "
                f"TENSOR_TYPE {made_for}"
            )
