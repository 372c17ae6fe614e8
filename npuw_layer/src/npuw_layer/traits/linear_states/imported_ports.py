"""Checks that imported programs have the same states of fixed size, and assign all of them."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.traits.linear_states.names import is_linear_cache
from npuw_layer.traits.variables import variables


def check_states(stages: Sequence[Stage], loaded: Sequence[LoadedModel]) -> None:
    """Compare the states that programs read and assign.

    Args:
        stages: expected stages of the programs.
        loaded: the programs.

    Raises:
        BlobError: a program reads states other than those it assigns, or than the other programs.
    """
    of_all: dict[str, TensorInfo] | None = None
    for stage, program in zip(stages, loaded, strict=True):
        if stage.kind is StageKind.HEAD:
            continue
        read = variables(program.inputs, READ_PREFIX, is_linear_cache)
        of_all = read if of_all is None else of_all
        assigned = variables(program.outputs, ASSIGN_PREFIX, is_linear_cache)
        if read != of_all or read != assigned:
            raise BlobError(f"{stage.name} has other states than the rest")
