"""Device buffers in which the programs of a conversation read its adapters.

Only changed variables are copied to device memory, before the next inference. All static models of
the conversation read the same buffers, so prefill and every generate variant agree. (NPUW sets
adapters only on prefill and the current variant, and only when a conversation begins;
docs/reference/npuw.md#lora.)
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.elements import convert_values, numpy_element
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import READ_PREFIX, Array, Device, Program, TensorInfo
from npuw_layer.traits.lora.values import AdapterValues


class AdapterBuffers:
    """Variables of adapters in device memory, with zeros after an adapter's own rank.

    Args:
        device: device of the buffers.
        inputs: inputs of the static models, each variable once.
    """

    def __init__(self, device: Device, inputs: Sequence[TensorInfo]) -> None:
        arena = Arena(device, inputs).tensors if inputs else {}
        self._tensors = {name.removeprefix(READ_PREFIX): each for name, each in arena.items()}
        for tensor in self._tensors.values():
            tensor.data[...] = 0
        self._held: dict[str, Array] = {}
        """Copied values, in the form in which they were set."""
        self._version: tuple[AdapterValues, int] | None = None
        """Adapters that the buffers hold, and their version."""

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return sum(tensor.data.nbytes for tensor in self._tensors.values())

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind a program's inputs to the buffers.

        Args:
            program: program whose other tensors are bound.
            ports: all its inputs and outputs.
        """
        for info in ports:
            tensor = self._tensors.get(info.name.removeprefix(READ_PREFIX))
            if tensor is not None:
                program.bind(info.name, tensor.memory, tensor.offset)

    def apply(self, values: AdapterValues) -> None:
        """Copy values that have changed to the buffers.

        Raises:
            StateError: the parts of an adapter have different ranks; no value is copied.
        """
        version = values, values.version
        if self._version == version:
            return
        changed = [name for name in self._tensors if self._held.get(name) is not values.get(name)]
        values.check_ranks(changed)
        self._version = None
        for name in changed:
            tensor, given = self._tensors[name], values.get(name)
            self._held.pop(name, None)  # until the whole value is copied
            tensor.data[...] = 0
            held = convert_values(given, numpy_element(given.dtype), tensor.info.element)
            tensor.data[tuple(map(slice, given.shape))] = held
            self._held[name] = given
        self._version = version
