"""The LM head as conversations use it: hidden states in, logits out."""

from __future__ import annotations

from collections.abc import Mapping

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.llm.arena import Arena
from npuw_layer.llm.names import EMBED, LOGITS
from npuw_layer.llm.stages import Stage
from npuw_layer.ports import Array, Device, LoadedModel, Program
from npuw_layer.weights_bank import WeightsBank


class LMHead:
    """The models of the head; the smallest that takes all hidden states is run.

    Args:
        device: where they run.
        models: by stage; one or more.
        bank: the model's weights.
    """

    def __init__(
        self, device: Device, models: Mapping[Stage, LoadedModel], bank: WeightsBank
    ) -> None:
        self._models: dict[int, tuple[Arena, Program]] = {}
        for stage in sorted(models, key=lambda stage: stage.tokens):
            loaded = models[stage]
            own = [t for t in loaded.inputs if not t.name.startswith(WEIGHT_PREFIX)]
            arena, program = Arena(device, [*own, *loaded.outputs]), loaded.create_program()
            arena.bind(program)
            bank.bind(program, loaded.inputs)
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

    def free(self) -> None:
        """Give the memory back."""
        for arena, _ in self._models.values():
            arena.free()
