"""The LM head as conversations use it: hidden states in, logits out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena
from npuw_layer.backends.protocols import Array, Device, LoadedModel, Memory, Program, TensorInfo
from npuw_layer.llm.names import EMBED, LOGITS
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.request_buffers import ProgramBuffers
from npuw_layer.traits.lora.names import is_adapter_input
from npuw_layer.weights.bank import WeightsBank


class LMHead:
    """The models of the head; the smallest that takes all hidden states is run.

    Args:
        device: where they run.
        models: by stage; one or more.
        adapters: those of the conversation, which may be beside the head.
        bank: the model's weights.
    """

    def __init__(
        self,
        device: Device,
        models: Mapping[Stage, LoadedModel],
        adapters: ProgramBuffers,
        bank: WeightsBank,
    ) -> None:
        self._models: dict[int, tuple[Arena, Program]] = {}
        self._elsewhere: dict[int, tuple[Program, Memory, int]] = {}
        """Programs that write to memory of the caller's, and where."""
        self._make: dict[int, Callable[[], Program]] = {}
        for stage in sorted(models, key=lambda stage: stage.tokens):
            loaded = models[stage]
            own = [info for info in loaded.inputs if _is_own(info)]
            arena = Arena(device, [*own, *loaded.outputs])
            make = self._make[stage.tokens] = partial(_made, loaded, arena, adapters, bank)
            program = make()
            program.prepare()
            self._models[stage.tokens] = arena, program

    def logits(self, states: Array) -> Array:
        """Compute logits.

        Args:
            states: [1, n, channels], n at most what the largest model takes.

        Returns:
            f32 [1, n, V]; the next call overwrites it.
        """
        count = states.shape[1]
        arena, program = next(each for rows, each in self._models.items() if rows >= count)
        arena[EMBED][:, :count] = states
        program.run()
        return arena[LOGITS][:, :count]

    def write(self, states: Array, memory: Memory, offset: int) -> bool:
        """Compute logits right into memory of the device, if a model makes just as many.

        Args:
            states: [1, n, channels].
            memory: where they are to be, f32 [1, n, V].
            offset: where they begin in it, bytes.

        Returns:
            Whether there is such a model; otherwise nothing has run.
        """
        count = states.shape[1]
        if count not in self._models:
            return False
        arena, _ = self._models[count]
        arena[EMBED][...] = states
        program, *bound = self._elsewhere.get(count) or (self._make[count](),)
        if bound != [memory, offset]:
            self._elsewhere.pop(count, None)  # until it is bound
            program.bind(LOGITS, memory, offset)
            self._elsewhere[count] = program, memory, offset
        program.run()
        return True

    def free(self) -> None:
        """Give the memory back."""
        for arena, _ in self._models.values():
            arena.free()


def _is_own(info: TensorInfo) -> bool:
    return not (info.name.startswith(WEIGHT_PREFIX) or is_adapter_input(info))


def _made(
    loaded: LoadedModel, arena: Arena, adapters: ProgramBuffers, bank: WeightsBank
) -> Program:
    """A program, bound to its tensors and weights."""
    program = loaded.create_program()
    arena.bind(program)
    adapters.bind(program, loaded.inputs)
    bank.bind(program, loaded.inputs)
    return program
