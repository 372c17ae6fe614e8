"""Device memory of a conversation's encoder states, and of K and V computed from them.

Prefill writes K and V to the memory that all generate variants read, without copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.arena import Arena, nbytes
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    Array,
    Device,
    Program,
    TensorInfo,
)
from npuw_layer.llm.trait import ConversationPart
from npuw_layer.traits.cross_attention.names import ENCODER_STATES
from npuw_layer.traits.cross_attention.variable_state import CrossVariableState

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation


class CrossBuffers(ConversationPart):
    """Encoder states, and K and V, of a decoder's conversation.

    Args:
        device: device of the buffers.
        held: the input of encoder states, and the inputs that read K and V.
    """

    persists = True
    shown_last = True

    def __init__(self, device: Device, held: Iterable[TensorInfo]) -> None:
        own = [_variable(info) for info in held]
        self._arena = Arena(device, own)
        self._nbytes = sum(map(nbytes, own))

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self._nbytes

    @property
    def states(self) -> Array:
        """Encoder states f32 [1, frames, channels] for the next prompt."""
        return self._arena[ENCODER_STATES]

    @property
    def names(self) -> list[str]:
        """Names of the variables."""
        return [name for name in self._arena.tensors if name != ENCODER_STATES]

    def rows(self, name: str) -> Array:
        """Return the values of a variable, [frames, heads, width]; a view."""
        return self._arena[name][0]

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind a program's inputs and outputs to the buffers."""
        for info in ports:
            tensor = self._arena.tensors.get(_variable(info).name)
            if tensor is not None:
                program.bind(info.name, tensor.memory, tensor.offset)

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[CrossVariableState]:
        """Return the variables as a request exposes them."""
        return [CrossVariableState(name, talk, check_idle, self) for name in self.names]


def _variable(info: TensorInfo) -> TensorInfo:
    """Return the tensor under the name of its variable."""
    name = info.name.removeprefix(READ_PREFIX).removeprefix(ASSIGN_PREFIX)
    return TensorInfo(name, info.element, info.shape)
