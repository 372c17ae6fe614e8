"""Checks that imported programs read the same adapters, at the compiled rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npuw_layer.backends.protocols import READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.tensors.names import slot_of, slot_variable
from npuw_layer.traits.lora.names import adapter_name, is_adapter_variable
from npuw_layer.traits.variables import variables

_FLOATS = frozenset({"f32", "f16", "bf16"})
"""Element types of programs' activations."""


def check_adapters(stages: Sequence[Stage], loaded: Sequence[LoadedModel], rank: int) -> None:
    """Check that all programs except LM heads read the same adapters, at the given rank.

    Args:
        stages: expected stages of the programs.
        loaded: the programs.
        rank: NPUW_LLM_MAX_LORA_RANK.

    Raises:
        BlobError: adapters differ, or are of another rank.
    """
    known: dict[str, TensorInfo] = {}
    bodies: set[frozenset[str]] = set()
    for stage, program in zip(stages, loaded, strict=True):
        read = variables(program.inputs, READ_PREFIX, is_adapter_variable)
        names = {slot_of(name)[0] for name in read}
        for name, info in read.items():
            variable = slot_of(name)[0]
            alone = TensorInfo(variable, info.element, info.shape[-2:])
            if not _fits(variable, info, stage, rank) or known.setdefault(variable, alone) != alone:
                raise BlobError(
                    f"{stage.name} has {READ_PREFIX}{name} {info.element} {list(info.shape)}, "
                    f"which differs from the other programs, or is not of rank {rank}"
                )
        if {*read} != _expected(names, stage):
            raise BlobError(f"{stage.name} has different adapters in its slots")
        if stage.kind is not StageKind.HEAD:
            bodies.add(frozenset(names))
    if len(bodies) > 1:
        raise BlobError("its programs have different adapters")


def _expected(names: Iterable[str], stage: Stage) -> set[str]:
    """Return the names of the variables in a stage's inputs."""
    if stage.slots == 1:
        return set(names)
    return {slot_variable(name, slot) for name in names for slot in range(stage.slots)}


def _fits(variable: str, info: TensorInfo, stage: Stage, rank: int) -> bool:
    """Return whether an input is a matrix of the rank; with several slots, a batch of one."""
    of = adapter_name(variable)
    batch = (1,) if stage.slots > 1 else ()
    return (
        of is not None
        and info.element in _FLOATS
        and len(info.shape) == len(batch) + 2
        and info.shape[: len(batch)] == batch
        and info.shape[len(batch) + of.part.rank_axis] == rank
    )
