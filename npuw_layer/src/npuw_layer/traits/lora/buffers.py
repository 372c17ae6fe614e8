"""Where the programs of a conversation read its adapters: one buffer for each variable.

What was set is copied to device memory before the next inference, and only that. All static models
of the conversation read the same buffers, so that prefill and every generate variant agree. (NPUW
sets them on prefill and the current variant alone, and only when a conversation begins; fact sheet
npuw §c.11.)
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.elements import convert_values, numpy_element
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import READ_PREFIX, Array, Device, Program, TensorInfo
from npuw_layer.traits.lora.values import AdapterValues


class AdapterBuffers:
    """The variables of adapters in device memory, zeros behind an adapter's own rank.

    Satisfies ``llm.request.request_buffers``.

    Args:
        device: where they lie.
        inputs: of the static models, each variable once.
    """

    def __init__(self, device: Device, inputs: Sequence[TensorInfo]) -> None:
        arena = Arena(device, inputs).tensors if inputs else {}
        self._tensors = {name.removeprefix(READ_PREFIX): each for name, each in arena.items()}
        for tensor in self._tensors.values():
            tensor.data[...] = 0
        self._held: dict[str, Array] = {}
        """What was copied, as it was given."""
        self._version: tuple[AdapterValues, int] | None = None
        """Whose adapters these are, and of when."""

    @property
    def nbytes(self) -> int:
        """Device memory that they take."""
        return sum(tensor.data.nbytes for tensor in self._tensors.values())

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Let a program read them here.

        Args:
            program: bound to all else.
            ports: its inputs and outputs, others among them.
        """
        for info in ports:
            tensor = self._tensors.get(info.name.removeprefix(READ_PREFIX))
            if tensor is not None:
                program.bind(info.name, tensor.memory, tensor.offset)

    def apply(self, values: AdapterValues) -> None:
        """Copy what was set to where programs read it, if it is not there yet.

        Raises:
            StateError: the parts of an adapter have different ranks; nothing is copied.
        """
        version = values, values.version
        if self._version == version:
            return
        changed = [name for name in self._tensors if self._held.get(name) is not values.get(name)]
        values.check_ranks(changed)
        self._version = None
        for name in changed:
            tensor, given = self._tensors[name], values.get(name)
            self._held.pop(name, None)  # until all of it is copied
            tensor.data[...] = 0
            held = convert_values(given, numpy_element(given.dtype), tensor.info.element)
            tensor.data[tuple(map(slice, given.shape))] = held
            self._held[name] = given
        self._version = version

    def advance(self, tokens: int) -> None:
        """Do nothing: adapters stay as they are."""
