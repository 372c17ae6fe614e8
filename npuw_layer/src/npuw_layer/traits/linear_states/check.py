"""Checks of options and of imported programs of models with states of fixed size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, LoadedModel, TensorInfo
from npuw_layer.errors import BlobError, ModelError
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.traits.linear_states.names import is_convolution, is_linear_cache
from npuw_layer.traits.variables import variables


def check_linear_caches(variables: Iterable[str], options: Options) -> None:
    """Check that options are compatible with states of fixed size, if the model has any.

    Args:
        variables: variables of a stateful graph.
        options: options of its compilation.

    Raises:
        ModelError: an option would share K and V without the states, or a state is not one of a
            short convolution.
    """
    states = sorted(name for name in variables if is_linear_cache(name))
    if not states:
        return
    others = [name for name in states if not is_convolution(name)]
    if others:
        raise ModelError(
            f"the model has layers with a state {others[0]!r}; of states of fixed size only those "
            "of short convolutions are supported, not state-space models"
        )
    refused = {
        "NPUW_LLM_ENABLE_PREFIX_CACHING": options.enable_prefix_caching,
        "NPUW_LLM_BATCH_SLOTS": max(options.batch_slots) > 1,
        "NPUW_TEXT_EMBED": options.named("NPUW_TEXT_EMBED"),
        "NPUW_TEXT_RERANK": options.named("NPUW_TEXT_RERANK"),
    }
    for name, wanted in refused.items():
        if wanted:
            raise ModelError(
                f"{name}: the model has layers with a state in place of K and V ({states[0]!r}), "
                "which depends on all earlier tokens; leave the option out"
            )


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
