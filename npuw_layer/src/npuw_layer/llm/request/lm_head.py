"""LM head as a separate program: hidden states in, logits out.

All its programs read hidden states from one tensor. A generate model that takes at most as many
tokens as the largest of them writes its hidden states directly there, so the host has no part
between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import Arena, DeviceTensor
from npuw_layer.backends.protocols import (
    READ_PREFIX,
    Array,
    LoadedModel,
    Memory,
    Program,
    TensorInfo,
)
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.tensors.names import EMBED, LOGITS


class LogitsTarget(NamedTuple):
    """Device memory for logits f32 [1, rows, V]."""

    memory: Memory
    offset: int
    rows: int


class LMHead:
    """Models of the head, of which the smallest that takes all hidden states runs.

    Args:
        compiled: all static models.
        stages: one or more heads among them, ascending by tokens.
        parts: the conversation's parts of traits, which may have variables in the head.
    """

    def __init__(
        self, compiled: CompiledLLM, stages: Sequence[Stage], parts: ConversationParts
    ) -> None:
        device = compiled.device
        states = [info for info in compiled.models[stages[-1]].inputs if info.name == EMBED]
        self._arena = Arena(device, states)
        self._parts, self._bank = parts, compiled.bank
        self._stages = {stage.tokens: stage for stage in stages}
        self._loaded = {stage.tokens: compiled.models[stage] for stage in stages}
        self.last = stages[0]
        """Stage of the program that was used last."""
        self._models: dict[int, tuple[Arena, Program]] = {}
        self._elsewhere: dict[int, tuple[Program, Memory, int]] = {}
        """Programs that write to the caller's memory, with memory and offset."""
        for tokens, loaded in self._loaded.items():
            arena = Arena(device, [*filter(_is_own, loaded.inputs), *loaded.outputs])
            program = self._made(loaded, arena)
            program.prepare()
            self._models[tokens] = arena, program

    @staticmethod
    def of(compiled: CompiledLLM, parts: ConversationParts) -> LMHead | None:
        """Make the head of one conversation; None if each model has its own."""
        stages = compiled.plan.own_heads
        return LMHead(compiled, stages, parts) if stages else None

    @property
    def states(self) -> DeviceTensor:
        """Hidden states that all programs read, [1, rows, channels], rows in use first."""
        return self._arena.tensors[EMBED]

    def program(
        self, rows: int, target: LogitsTarget | None = None
    ) -> tuple[Program, Array | None]:
        """Return the program that makes logits of the first rows of ``states``.

        Args:
            rows: number of rows, at most what the largest model takes.
            target: device memory for the logits, if a model makes as many rows.

        Returns:
            The program, and the array of its logits, f32 [1, rows, V], valid until the next run;
            None if they will be in the target.
        """
        fitting = next(most for most in self._models if most >= rows)
        self.last = self._stages[fitting]
        if target is not None and rows == target.rows and rows in self._models:
            return self._bound(rows, target), None
        arena, program = self._models[fitting]
        return program, arena[LOGITS][:, :rows]

    def logits(self, states: Array, target: LogitsTarget | None = None) -> Array | None:
        """Compute logits of hidden states [1, rows, channels]; results as ``program``."""
        rows = states.shape[1]
        self.states.data[:, :rows] = states
        program, logits = self.program(rows, target)
        program.run()
        return logits

    def free(self) -> None:
        """Free the device memory."""
        self._arena.free()
        for arena, _ in self._models.values():
            arena.free()

    def _bound(self, rows: int, target: LogitsTarget) -> Program:
        """Return a program that writes its logits to a target."""
        program, *bound = self._elsewhere.get(rows) or (self._again(rows),)
        if bound != [target.memory, target.offset]:
            self._elsewhere.pop(rows, None)  # until it is bound
            program.bind(LOGITS, target.memory, target.offset)
            self._elsewhere[rows] = program, target.memory, target.offset
        return program

    def _again(self, rows: int) -> Program:
        arena, _ = self._models[rows]
        return self._made(self._loaded[rows], arena)

    def _made(self, loaded: LoadedModel, arena: Arena) -> Program:
        """Make a program, bound to its tensors and weights."""
        program = loaded.create_program()
        arena.bind(program)
        program.bind(EMBED, self.states.memory, self.states.offset)
        self._parts.bind(program, loaded.inputs)
        self._bank.bind(program, loaded.inputs)
        return program


def _is_own(info: TensorInfo) -> bool:
    return info.name != EMBED and not info.name.startswith((WEIGHT_PREFIX, READ_PREFIX))
