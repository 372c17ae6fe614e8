"""Checks of imported programs that read texts whole: text inputs, and equal outputs."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.protocols import ASSIGN_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.tensors.names import IDS, MASK, POSITIONS, VOCABULARY
from npuw_layer.traits.images.trait import TOKEN_TYPES

_INPUTS = {IDS, MASK, TOKEN_TYPES, POSITIONS}
_BESIDE = (WEIGHT_PREFIX, VOCABULARY)
"""Prefixes of inputs other than texts."""


def keeps_nothing(loaded: Sequence[LoadedModel]) -> bool:
    """Return whether no program writes rows of K and V."""
    return not any(
        info.name.startswith(ASSIGN_PREFIX) for program in loaded for info in program.outputs
    )


def check_whole_ports(stages: Sequence[Stage], loaded: Sequence[LoadedModel]) -> None:
    """Check that the programs' ports match the stages and one another.

    Args:
        stages: the expected stages; all of a model's, or some.
        loaded: the programs.

    Raises:
        BlobError: a program reads inputs other than a text, or the programs' outputs differ.
    """
    of_all: list[tuple[str, str, tuple[int, ...]]] = []
    for stage, program in zip(stages, loaded, strict=True):
        inputs = {i.name: i for i in program.inputs if not i.name.startswith(_BESIDE)}
        wrong = [
            info.name
            for info in inputs.values()
            if (info.element, info.shape) != ("i64", (1, stage.tokens))
        ]
        if wrong or not {IDS, MASK} <= inputs.keys() <= _INPUTS:
            raise BlobError(f"{stage.name} reads {', '.join(wrong or inputs)}, not a text")
        given = [_of_text(info, stage.tokens) for info in program.outputs]
        of_all = of_all or given
        if not given or given != of_all:
            raise BlobError(f"{stage.name} has other outputs than the rest")


def _of_text(info: TensorInfo, tokens: int) -> tuple[str, str, tuple[int, ...]]:
    """Return an output's name and type, and its shape without the length of the text.

    Raises:
        BlobError: the output is not for a single text.
    """
    if info.element != "f32" or len(info.shape) < 2 or info.shape[0] != 1:
        raise BlobError(f"{info.name} is {info.element} {list(info.shape)}, not f32 [1, …]")
    of_tokens = len(info.shape) > 2 and info.shape[1] == tokens
    return info.name, info.element, (0, *info.shape[2:]) if of_tokens else info.shape[1:]
