"""A tensor in memory that the NPU accesses in place."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from compiler_layer.elements import FOUR_BIT, NUMPY, numpy_element
from npuw_layer.backends.protocols import Array, ImportsMemory, RemoteMemory
from npuw_layer.backends.release import release_waiting, release_with
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import RemoteError, TensorError
from npuw_layer.remote.memory import MemoryRange
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

    Its memory is freed with the last reference to the tensor; SHARED_BUF memory is freed only by
    its allocator.

    Args:
        device: device of the memory.
        element: element type, by OpenVINO's name.
        shape: dimensions.
        span: the tensor's memory.
        properties: properties that the tensor was created with.
    """

    def __init__(
        self,
        device: ImportsMemory,
        element: str,
        shape: tuple[int, ...],
        span: MemoryRange,
        properties: RemoteProperties,
    ) -> None:
        release_waiting()
        self._device = device
        self._element = element
        self._shape = shape
        self._span = span
        self._properties = properties
        release_with(self, span.release)

    @property
    def element_type(self) -> str:
        """Element type, by OpenVINO's name."""
        return self._element

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return self._shape

    @property
    def byte_size(self) -> int:
        """Bytes of all elements."""
        return math.prod(self._shape) * NUMPY[self._element].itemsize

    @property
    def properties(self) -> RemoteProperties:
        """Properties that the tensor was created with."""
        return self._properties

    @property
    def data(self) -> Array:
        """Values in place: the device reads what is written here (bf16 as its bits).

        Raises:
            RemoteError: the memory is not host-visible, or was freed.
        """
        if not self.span().memory.host_visible:
            raise RemoteError("the host cannot access this memory; use copy_to and copy_from")
        return self._fetch().view(NUMPY[self._element]).reshape(self._shape)

    def span(self) -> MemoryRange:
        """Return the tensor's memory, checked.

        Raises:
            RemoteError: the memory was freed.
            NpuwFault: the memory maps a file that was truncated.
        """
        if not self._span.memory.alive:
            raise RemoteError(
                f"the memory of a remote tensor at {self._span.address:#x} was freed; keep the "
                "memory of SHARED_BUF, and its context, until the tensor is freed"
            )
        self._span.memory.check()
        return self._span

    def is_of(self, device: ImportsMemory) -> bool:
        """Return whether programs of a device can bind the tensor."""
        return self._device.memory_space is device.memory_space

    def get_params(self) -> dict[str, Any]:
        """Return the properties of the tensor's creation; MEM_HANDLE is the device address."""
        params = {
            L0_CONTEXT: self._device.memory_space,
            MEM_TYPE: str(self._properties.mem_type),
            MEM_HANDLE: self._span.address,
            TENSOR_TYPE: str(self._properties.tensor_type),
        }
        file = self._properties.file
        return params if file is None else params | {FILE_DESCRIPTOR: file}

    def get_device_name(self) -> str:
        """Return the name of the tensor's device."""
        return "NPU"

    def copy_to(self, target: RemoteTensor | Tensor | Array, /) -> None:
        """Copy the values into another tensor of the same type and shape.

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
            raise TensorError("copy_to: the target array is read-only")
        values[...] = self._fetch().view(values.dtype).reshape(values.shape)

    def copy_from(self, source: RemoteTensor | Tensor | Array, /) -> None:
        """Copy the values of another tensor of the same type and shape into this one.

        Raises:
            TensorError: type or shape differ, or this is the read-only memory of a file.
            RemoteError: memory was freed.
        """
        span = self.span()
        if not span.memory.writable:
            raise TensorError(f"{self._properties.mem_type} memory is read-only")
        tensor = as_tensor(source)
        if isinstance(tensor, Tensor):
            self._store(np.ascontiguousarray(self._checked(tensor.data)))
            return
        self._check(tensor.element_type, tensor.shape)
        if tensor.is_of(self._device):
            read = tensor.span()
            self._device.copy(span.memory, span.offset, read.memory, read.offset, self.byte_size)
        else:
            self._store(tensor._fetch())

    def _fetch(self) -> Array:
        """Return the tensor's bytes: a view if they are host-visible, else a copy."""
        span, nbytes = self.span(), self.byte_size
        if span.memory.host_visible:
            return span.memory.data[span.offset : span.offset + nbytes]
        with self._staging() as staging:
            self._device.copy(staging, 0, span.memory, span.offset, nbytes)
            return staging.data[:nbytes].copy()

    def _store(self, values: Array) -> None:
        """Write a contiguous array's bytes."""
        span, raw = self.span(), values.reshape(-1).view(np.uint8)
        if span.memory.host_visible:
            span.memory.data[span.offset : span.offset + raw.size] = raw
            return
        with self._staging() as staging:
            staging.data[: raw.size] = raw
            self._device.copy(span.memory, span.offset, staging, 0, raw.size)

    @contextmanager
    def _staging(self) -> Generator[RemoteMemory]:
        """Allocate temporary memory that host and device both access."""
        memory = self._device.allocate_remote(self.byte_size)
        try:
            yield memory
        finally:
            memory.free()

    def _checked(self, values: Array) -> Array:
        if values.dtype != NUMPY[self._element]:
            raise TensorError(f"{values.dtype} values do not fit a tensor of {self._element}")
        self._check(self._element, values.shape)
        return values

    def _check(self, element: str, shape: tuple[int, ...]) -> None:
        if element != self._element or shape != self._shape:
            raise TensorError(f"{element} {list(shape)} is not {self._element} {list(self._shape)}")


AnyTensor = Tensor | RemoteTensor | Array
"""Values of inputs and outputs."""


def as_tensor(value: AnyTensor) -> Tensor | RemoteTensor:
    """Wrap a caller's value as a tensor: an array, or an object whose ``data`` is an array.

    Raises:
        TensorError: the value is not such an object.
    """
    if isinstance(value, RemoteTensor):
        return value
    array = value if isinstance(value, np.ndarray) else _data_of(value)
    if array is not None:
        return Tensor(array)
    what = f"the scalar {value!r}" if np.isscalar(value) else repr(value)
    raise TensorError(f"{what} is not a tensor; pass a Tensor, a RemoteTensor or an array")


def _data_of(value: object) -> Array | None:
    """Return a tensor's array, also another runtime's (``openvino.Tensor``); else None."""
    try:
        found = getattr(value, "data", None)
    except RuntimeError as error:  # e.g. a remote tensor of that runtime
        raise TensorError(f"the values of {value!r} cannot be read: {error}") from None
    return cast(Array, found) if isinstance(found, np.ndarray) else None


def values_of(value: AnyTensor) -> Array:
    """Return a tensor's values: a view if host-visible, else a copy.

    Raises:
        TensorError: the value is not a tensor.
        RemoteError: its memory was freed.
    """
    tensor = as_tensor(value)
    if isinstance(tensor, Tensor) or tensor.span().memory.host_visible:
        return tensor.data
    values = np.empty(tensor.shape, NUMPY[tensor.element_type])
    tensor.copy_to(values)
    return values


def element_name(element: str | npt.DTypeLike) -> str:
    """Return an element type's name, from a name, numpy's type, or an ``openvino.Type``.

    Raises:
        RemoteError: the element type is unknown, or two elements share a byte.
    """
    named = getattr(element, "get_type_name", None)
    name = str(named()) if callable(named) else element
    if not (isinstance(name, str) and name in NUMPY):
        name = _of_numpy(name)
    if name in FOUR_BIT:
        raise RemoteError(f"{name}: two elements share a byte; create a tensor of u8 instead")
    return name


def _of_numpy(element: npt.DTypeLike) -> str:
    """Return the name of numpy's type; OpenVINO reads numpy's short names ("f8") as other types."""
    try:
        if not element:  # numpy reads None as f64
            raise TypeError
        kind = np.dtype(element)
        if not isinstance(element, str) or element == kind.name:
            return numpy_element(kind)
    except (TypeError, KeyError):
        pass
    raise RemoteError(f"unknown element type {element!r}; use one of {', '.join(NUMPY)}")
