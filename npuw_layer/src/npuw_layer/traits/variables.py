"""Variables of traits: in programs, and in the device memory of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import Device, Program, TensorInfo
from npuw_layer.llm.trait import ConversationPart


def variables(
    infos: Iterable[TensorInfo], prefix: str, owns: Callable[[str], bool]
) -> dict[str, TensorInfo]:
    """Return the tensors of programs that belong to a trait's variables, by variable.

    Args:
        infos: inputs or outputs of programs.
        prefix: ``READ_PREFIX`` or ``ASSIGN_PREFIX``.
        owns: whether a variable is the trait's.

    Returns:
        The tensors, renamed to their variables.
    """
    named = (
        replace(info, name=info.name.removeprefix(prefix))
        for info in infos
        if info.name.startswith(prefix)
    )
    return {info.name: info for info in named if owns(info.name)}


class ArenaPart(ConversationPart):
    """A part whose tensors are in device memory, where programs read and write them.

    Args:
        device: device of the memory.
        infos: the tensors.
    """

    def __init__(self, device: Device, infos: Sequence[TensorInfo]) -> None:
        self._arena = Arena(device, infos)

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return sum(tensor.data.nbytes for tensor in self._arena.tensors.values())

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind the inputs and outputs of a program that are stored in this part's memory."""
        for info in ports:
            tensor = self._arena.tensors.get(self._tensor_of(info.name))
            if tensor is not None:
                program.bind(info.name, tensor.memory, tensor.offset)

    def _tensor_of(self, port: str) -> str:
        """Return the name of the tensor that an input or output of a program is bound to."""
        return port
