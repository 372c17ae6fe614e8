"""A tensor in memory that the NPU reaches."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from compiler_layer.elements import FOUR_BIT, NUMPY, numpy_element
from npuw_layer.backends.protocols import Array, ImportsMemory
from npuw_layer.backends.release import release_waiting, release_with
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.remote.copies import copy_bytes, fetch_bytes, store_bytes
from npuw_layer.remote.memory import Piece
from npuw_layer.remote.properties import (
    FILE_DESCRIPTOR,
    L0_CONTEXT,
    MEM_HANDLE,
    MEM_TYPE,
    TENSOR_TYPE,
    RemoteProperties,
)


class RemoteTensor:
    """A tensor that requests of the same Core bind in place.

    Its memory goes back when nobody holds the tensor any more; SHARED_BUF's stays with whoever
    allocated it.

    Args:
        device: whose memory it is.
        element: its element type, by OpenVINO's name.
        shape: its dimensions.
        piece: its memory.
        properties: what it was made with.
    """

    def __init__(
        self,
        device: ImportsMemory,
        element: str,
        shape: tuple[int, ...],
        piece: Piece,
        properties: RemoteProperties,
    ) -> None:
        release_waiting()
        self._device = device
        self._element = element
        self._shape = shape
        self._piece = piece
        self._properties = properties
        release_with(self, piece.release)

    @property
    def element_type(self) -> str:
        """Its element type, by OpenVINO's name."""
        return self._element

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self._shape

    @property
    def byte_size(self) -> int:
        """Bytes of its elements."""
        return math.prod(self._shape) * NUMPY[self._element].itemsize

    @property
    def properties(self) -> RemoteProperties:
        """What it was made with."""
        return self._properties

    @property
    def data(self) -> Array:
        """The values, where they lie: what is written here the device reads (bf16 as its bits).

        Raises:
            RemoteError: the host does not see the memory, or it is gone.
        """
        piece = self.piece()
        if not piece.memory.host_visible:
            raise RemoteError(
                "the host does not see memory of zeMemAllocDevice; use copy_to and copy_from"
            )
        raw = piece.memory.data[piece.offset : piece.offset + self.byte_size]
        return raw.view(NUMPY[self._element]).reshape(self._shape)

    def piece(self) -> Piece:
        """Where it lies.

        Raises:
            RemoteError: the memory was freed.
            NpuwFault: it is mapped from a file that was truncated.
        """
        if not self._piece.memory.alive:
            raise RemoteError(
                f"the memory of a remote tensor at {self._piece.address:#x} was freed; keep what "
                "SHARED_BUF names, and its context, until the tensor is gone"
            )
        self._piece.memory.check()
        return self._piece

    def is_of(self, device: ImportsMemory) -> bool:
        """Whether programs of a device can be bound to it."""
        return self._device.memory_space is device.memory_space

    def get_params(self) -> dict[str, Any]:
        """Give the properties that it was made with; its MEM_HANDLE is the device's address."""
        params = {
            L0_CONTEXT: self._device.memory_space,
            MEM_TYPE: str(self._properties.mem_type),
            MEM_HANDLE: self._piece.address,
            TENSOR_TYPE: str(self._properties.tensor_type),
        }
        file = self._properties.file
        return params if file is None else params | {FILE_DESCRIPTOR: file}

    def get_device_name(self) -> str:
        """The device that it was made for."""
        return "NPU"

    def copy_to(self, target: RemoteTensor | Tensor | Array, /) -> None:
        """Copy its values into another tensor of its type and shape.

        Raises:
            TensorError: type or shape differ, or the target is read-only.
            RemoteError: memory was freed.
        """
        tensor = as_tensor(target)
        if isinstance(tensor, RemoteTensor):
            tensor.copy_from(self)
            return
        values = self._checked(tensor.data)
        if not values.flags.writeable:
            raise TensorError("the array that is copied to is read-only")
        found = fetch_bytes(self._device, self.piece(), self.byte_size)
        values[...] = found.view(values.dtype).reshape(values.shape)

    def copy_from(self, source: RemoteTensor | Tensor | Array, /) -> None:
        """Take the values of another tensor of its type and shape.

        Raises:
            TensorError: type or shape differ, or this is the read-only memory of a file.
            RemoteError: memory was freed.
        """
        piece = self.piece()
        if not piece.memory.writable:
            raise TensorError(f"{self._properties.mem_type} memory is read-only")
        tensor = as_tensor(source)
        if isinstance(tensor, Tensor):
            store_bytes(self._device, piece, np.ascontiguousarray(self._checked(tensor.data)))
            return
        self._check(tensor.element_type, tensor.shape)
        if tensor.is_of(self._device):
            copy_bytes(self._device, piece, tensor.piece(), self.byte_size)
        else:
            values = fetch_bytes(tensor._device, tensor.piece(), self.byte_size)
            store_bytes(self._device, piece, values)

    def _checked(self, values: Array) -> Array:
        if values.dtype != NUMPY[self._element]:
            raise TensorError(f"{values.dtype} values for a tensor of {self._element}")
        self._check(self._element, values.shape)
        return values

    def _check(self, element: str, shape: tuple[int, ...]) -> None:
        if element != self._element or shape != self._shape:
            raise TensorError(f"{element} {list(shape)} is not {self._element} {list(self._shape)}")


AnyTensor = Tensor | RemoteTensor | Array
"""What inputs and outputs are set to."""


def as_tensor(value: AnyTensor) -> Tensor | RemoteTensor:
    """See what a caller gave as a tensor: an array, or whatever has one as its ``data``.

    Raises:
        TensorError: it is none.
    """
    if isinstance(value, RemoteTensor):
        return value
    array = value if isinstance(value, np.ndarray) else _data_of(value)
    if array is not None:
        return Tensor(array)
    what = f"the scalar {value!r}" if np.isscalar(value) else repr(value)
    raise TensorError(f"a tensor is a Tensor, a RemoteTensor or an array, not {what}")


def _data_of(value: object) -> Array | None:
    """The array of a tensor, also of another runtime's (``openvino.Tensor``), if it is one."""
    try:
        found = getattr(value, "data", None)
    except RuntimeError as error:  # a remote tensor of theirs, say
        raise TensorError(f"the values of {value!r} cannot be read: {error}") from None
    return cast(Array, found) if isinstance(found, np.ndarray) else None


def values_of(value: AnyTensor) -> Array:
    """Give a tensor's values: a view of what the host sees, else a copy.

    Raises:
        TensorError: it is no tensor.
        RemoteError: its memory was freed.
    """
    tensor = as_tensor(value)
    if isinstance(tensor, Tensor) or tensor.piece().memory.host_visible:
        return tensor.data
    values = np.empty(tensor.shape, NUMPY[tensor.element_type])
    tensor.copy_to(values)
    return values


def element_name(element: str | npt.DTypeLike) -> str:
    """Give an element type's name: of a name, of numpy's type, or of an ``openvino.Type``.

    Raises:
        RemoteError: there is none, or two of its elements share a byte.
    """
    named = getattr(element, "get_type_name", None)
    name = str(named()) if callable(named) else element
    if not (isinstance(name, str) and name in NUMPY):
        name = _of_numpy(name)
    if name in FOUR_BIT:
        raise RemoteError(f"{name}: two elements share a byte; make a tensor of u8 instead")
    return name


def _of_numpy(element: npt.DTypeLike) -> str:
    """Give the name of numpy's type; its short names ("f8") mean other types to OpenVINO."""
    try:
        if not element:  # numpy takes None for f64
            raise TypeError
        kind = np.dtype(element)
        if not isinstance(element, str) or element == kind.name:
            return numpy_element(kind)
    except (TypeError, KeyError):
        pass
    raise RemoteError(f"no element type {element!r}; there are {', '.join(NUMPY)}")
