"""Adapters of a conversation, and the device buffers in which its programs read them.

Only changed variables are copied to device memory, before the next inference. All static models of
the conversation read the same buffers, so prefill and every generate variant agree. (NPUW sets
adapters only on prefill and the current variant, and only when a conversation begins;
docs/reference/npuw.md#lora.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from compiler_layer.elements import convert_values, numpy_element
from npuw_layer.backends.protocols import READ_PREFIX, Array, Device, TensorInfo
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import Settings
from npuw_layer.traits.lora.values import AdapterValues, AdapterVariableState
from npuw_layer.traits.variables import ArenaPart

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation


class AdapterBuffers(ArenaPart):
    """Variables of adapters in device memory, with zeros after an adapter's own rank.

    Args:
        device: device of the buffers.
        variables: the variables, as static models read them.
        values: adapters in force, at first without effect.
    """

    persists = True

    def __init__(
        self, device: Device, variables: Sequence[TensorInfo], values: AdapterValues
    ) -> None:
        super().__init__(device, variables)
        for tensor in self._arena.tensors.values():
            tensor.data[...] = 0
        self._values = values
        self._held: dict[str, Array] = {}
        """Copied values, in the form in which they were set."""
        self._version: tuple[AdapterValues, int] | None = None
        """Adapters that the buffers hold, and their version."""

    @property
    def digest(self) -> bytes:
        """Identity of the adapters in force; empty if none has an effect."""
        return self._values.digest

    def use(self, settings: Settings | None) -> None:
        """Use the adapters of a conversation that has taken this slot."""
        assert isinstance(settings, AdapterValues)  # made by this trait's instance
        self._values = settings

    def begin(self) -> None:
        """Copy values that have changed to the buffers.

        Raises:
            StateError: the parts of an adapter have different ranks; no value is copied.
        """
        values, tensors = self._values, self._arena.tensors
        version = values, values.version
        if self._version == version:
            return
        changed = [name for name in tensors if self._held.get(name) is not values.get(name)]
        values.check_ranks(changed)
        self._version = None
        for name in changed:
            tensor, given = tensors[name], values.get(name)
            self._held.pop(name, None)  # until the whole value is copied
            tensor.data[...] = 0
            held = convert_values(given, numpy_element(given.dtype), tensor.info.element)
            tensor.data[tuple(map(slice, given.shape))] = held
            self._held[name] = given
        self._version = version

    def prefix_key(self, tokens: NewTokens) -> bytes:
        """Return a key that separates rows computed with these adapters from others."""
        return self._values.digest

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[AdapterVariableState]:
        """Return the variables as a request exposes them."""
        values = self._values
        return [AdapterVariableState(name, values, check_idle) for name in values.names]

    def _tensor_of(self, port: str) -> str:
        return port.removeprefix(READ_PREFIX)
