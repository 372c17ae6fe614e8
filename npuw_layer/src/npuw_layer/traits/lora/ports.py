"""Checks that imported programs read the same adapters, at the compiled rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npuw_layer.backends.protocols import READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.tensors.names import slot_of, slot_variable
from npuw_layer.traits.lora.names import adapter_name, is_adapter_input

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
        inputs = [info for info in program.inputs if is_adapter_input(info)]
        names = {_variable(info) for info in inputs}
        for info in inputs:
            alone = TensorInfo(_variable(info), info.element, info.shape[-2:])
            if not _fits(info, stage, rank) or known.setdefault(alone.name, alone) != alone:
                raise BlobError(
                    f"{stage.name} has {info.name} {info.element} {list(info.shape)}, which "
                    f"differs from the other programs, or is not of rank {rank}"
                )
        if {info.name.removeprefix(READ_PREFIX) for info in inputs} != _expected(names, stage):
            raise BlobError(f"{stage.name} has different adapters in its slots")
        if stage.kind is not StageKind.HEAD:
            bodies.add(frozenset(names))
    if len(bodies) > 1:
        raise BlobError("its programs have different adapters")


def _variable(info: TensorInfo) -> str:
    """Return the variable that an input reads, without its slot."""
    return slot_of(info.name.removeprefix(READ_PREFIX))[0]


def _expected(names: Iterable[str], stage: Stage) -> set[str]:
    """Return the names of the variables in a stage's inputs."""
    if stage.slots == 1:
        return set(names)
    return {slot_variable(name, slot) for name in names for slot in range(stage.slots)}


def _fits(info: TensorInfo, stage: Stage, rank: int) -> bool:
    """Return whether an input is a matrix of the rank; with several slots, a batch of one."""
    of = adapter_name(_variable(info))
    batch = (1,) if stage.slots > 1 else ()
    return (
        of is not None
        and info.element in _FLOATS
        and len(info.shape) == len(batch) + 2
        and info.shape[: len(batch)] == batch
        and info.shape[len(batch) + of.part.rank_axis] == rank
    )
